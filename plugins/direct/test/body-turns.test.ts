import { type Test, test } from 'tap'
import { ask } from './origin.js'
import { forwarding, mib, readInTurns } from './turns-lab.js'

const body = Buffer.alloc(2 * mib, 'x')
const many = 150

/** Those that are read for the first time, each once, come upon what a turn hands on. */
function fewAreLarge(t: Test, turns: readonly number[]): void {
  const large = turns.filter(bytes => bytes > 3 * mib)
  t.ok(large.length <= 4, `more than 3 MiB in ${large.length} of ${turns.length} turns`)
}

test('the bodies of requests share what a turn of the event loop hands on', async t => {
  const { forwarder, held } = await forwarding(t, {
    request: (request, response) => {
      let bytes = 0
      request.on('data', chunk => {
        bytes += chunk.length
      })
      request.on('end', () => response.end(String(bytes)))
    }
  })
  const answers: string[] = []
  const asking = Array.from({ length: many }, async () => {
    const { body: said } = await ask(forwarder.port, { agent: false, method: 'POST', body })
    answers.push(said)
  })
  const turns = await readInTurns(held.clients, () => answers.length === many)
  await Promise.all(asking)
  t.same([...new Set(answers)], [String(body.length)])
  fewAreLarge(t, turns)
})

test('so do the bodies of answers', async t => {
  const { forwarder, held } = await forwarding(t, { request: (_, response) => response.end(body) })
  const lengths: number[] = []
  const asking = Array.from({ length: many }, async () => {
    lengths.push((await ask(forwarder.port, { agent: false })).body.length)
  })
  const turns = await readInTurns(held.containers, () => lengths.length === many)
  await Promise.all(asking)
  t.same([...new Set(lengths)], [body.length])
  fewAreLarge(t, turns)
})
