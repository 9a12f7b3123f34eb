import type { BackupKeeper } from 'busbar/api/backups'
import { type Log, type OptionalHandle, Problem } from 'busbar/sdk'
import { testClock } from 'busbar/sdk/testing'
import { test } from 'tap'
import { LeftWork } from '../backup/left-work.js'
import type { WorkRow } from '../backup/work-store.js'

const never = new AbortController().signal
const row = (id: string, more: Partial<WorkRow> = {}): WorkRow => ({
  id,
  volume_id: `volume of ${id}`,
  what: 'backup',
  application_id: 'a',
  engine_name: 'busbar-vol-a-data',
  has_stopped: true,
  spare_name: null,
  is_exchanging: false,
  ...more
})

/** What a look does with these rows, where the engine says this to each start. */
function lookAt(rows: WorkRow[], { underWay = '', code = '' } = {}) {
  const done: string[] = []
  const left = new LeftWork({
    store: {
      left: async () => rows,
      end: async ({ id }) => {
        done.push(`ended ${id}`)
      }
    },
    backups: {
      settleLeft: async ({ volume_id: id, what }) => {
        done.push(`settled the ${what} of the ${id}`)
        if (code !== '') throw new Problem(502, code, 'it says no')
      }
    },
    keeper: {
      get: () => ({
        activity: async (_kind: string, id: string) => (id === `volume of ${underWay}` ? 'backup' : null)
      })
    } as unknown as OptionalHandle<BackupKeeper>,
    clock: testClock(),
    log: { warn: () => {} } as unknown as Log
  })
  return { left, done }
}

test('what two looks have found to be over is put back, and what is under way is not', async t => {
  const { left, done } = lookAt([row('one'), row('two')], { underWay: 'two' })
  await left.look(never)
  t.same(done, [], 'it may have begun just now')
  await left.look(never)
  t.same(done, ['settled the backup of the volume of one'])
})

test('an application whose container the engine does not start any more may be deployed', async t => {
  for (const [code, rows, ends] of [
    ['E_ENGINE_REFUSED', [row('one')], ['ended one']],
    ['E_ENGINE_REFUSED', [row('half', { what: 'restore', is_exchanging: true })], []],
    ['E_ENGINE_UNREACHABLE', [row('away')], []]
  ] as const) {
    const { left, done } = lookAt([...rows], { code })
    await left.look(never)
    await left.look(never)
    t.same(
      done.filter(what => what.startsWith('ended')),
      ends,
      code
    )
  }
})
