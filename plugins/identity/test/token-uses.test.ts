import { allow, type Method, type Operation, type TokenCaller } from 'busbar/sdk'
import { testClock } from 'busbar/sdk/testing'
import { pino } from 'pino'
import { test } from 'tap'
import type { TokenUse } from '../api.js'
import { TokenUses } from '../tokens/token-uses.js'

const operation = (method: Method, url: string): Operation => ({
  method,
  url,
  summary: '',
  group: '',
  access: allow.token('read', { project: 'none' })
})
const token = (tokenId: string): TokenCaller => ({
  kind: 'token',
  tokenId,
  tokenName: tokenId,
  scope: 'read',
  pins: null,
  user: { id: 'u', email: 'ada@example.com', username: '', role: 'member' }
})

function kit(put?: () => Promise<void>) {
  const clock = testClock()
  const written: string[] = []
  const lines: string[] = []
  const uses = new TokenUses({
    clock,
    log: pino(
      {},
      {
        write: line => {
          lines.push(line)
        }
      }
    ),
    store: {
      put:
        put ??
        (async (tokenId: string, use: TokenUse) => {
          written.push(`${tokenId} ${use.operation} ${use.project_id ?? '-'}`)
        })
    }
  })
  return { clock, uses, written, lines }
}

test('that the clock of the machine is set back keeps no use from being written', async t => {
  const { clock, uses, written } = kit()
  const list = operation('GET', '/api/projects')
  uses.admitted(token('a'), list, undefined)
  clock.set(-3_600_000)
  await clock.advance(300_000)
  uses.admitted(token('a'), list, undefined)
  t.equal(written.length, 2)
  uses.close()
})

test('a use is written at most every five minutes for each token, operation and project', async t => {
  const { clock, uses, written } = kit()
  const [one, list] = [operation('GET', '/api/projects/:projectId'), operation('GET', '/api/projects')]
  const all = () => {
    for (let n = 0; n < 10; n++) {
      for (const id of ['a', 'b']) {
        uses.admitted(token(id), list, undefined)
        for (const project of ['p', 'q']) uses.admitted(token(id), one, project)
      }
    }
  }
  all()
  t.same(
    written.splice(0).sort(),
    ['a', 'b'].flatMap(id => [
      `${id} GET /api/projects -`,
      `${id} GET /api/projects/{projectId} p`,
      `${id} GET /api/projects/{projectId} q`
    ])
  )
  await clock.advance(299_999)
  all()
  t.same(written, [])
  await clock.advance(1)
  all()
  t.equal(written.splice(0).length, 6, 'and again after that')
  await clock.advance(10 * 60_000)
  all()
  t.equal(written.length, 6, 'what was swept meanwhile is written as well')
  uses.close()
})

test('a use that cannot be written disturbs nobody', async t => {
  const { uses, lines } = kit(async () => {
    throw new Error('no connection')
  })
  uses.admitted(token('a'), operation('GET', '/api/projects'), undefined)
  await new Promise(resolve => setImmediate(resolve))
  t.match(lines.join(''), /the use of a token could not be written/)
  uses.close()
})
