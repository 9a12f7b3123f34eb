import { mkdtemp, readdir, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Database, Events, Installation, Log, Secrets, Tx } from 'busbar/sdk'
import { testClock } from 'busbar/sdk/testing'
import { type Test, test } from 'tap'
import { BackupRunner } from '../backup-runner.js'
import type { RecoveryKeyService } from '../recovery-key-service.js'
import type { RemoteService } from '../remote-service.js'
import type { OpenRun, RunStore } from '../run-store.js'

const dead: OpenRun = { id: 'dead', begun_at: new Date(), file: 'archive', remote_key: null, log: '' }

const strangers = 'busbar-backup-20261128T020000Z-bbbbbbbb-00000000.tar.gz.part'

/** A runner whose run is found open, first without and then with the lock. */
async function runnerOf(t: Test, found: readonly [OpenRun, OpenRun | undefined]) {
  const directory = await mkdtemp(join(tmpdir(), 'busbar-stale-'))
  t.teardown(async () => await rm(directory, { recursive: true, force: true }))
  await writeFile(join(directory, 'archive.part'), 'half')
  await writeFile(join(directory, strangers), 'being written by another installation')
  const seen: { ended: string[]; whenReleased: string[] } = { ended: [], whenReleased: [] }
  let looks = 0
  const runner = new BackupRunner({
    db: {
      sql: async () => [{ held: true }],
      transaction: async <T>(run: (tx: Tx) => Promise<T>): Promise<T> => {
        const result = await run({} as Tx)
        // The lock ends with the transaction: from here on another run may be writing.
        seen.whenReleased = await readdir(directory)
        await writeFile(join(directory, 'next.part'), 'being written')
        return result
      }
    } as unknown as Database,
    store: {
      open: async () => found[Math.min(looks++, 1)],
      installation: async () => 'aaaaaaaa-0000-4000-8000-000000000000',
      end: async (id: string) => seen.ended.push(id) > 0
    } as unknown as RunStore,
    events: { emit: async () => {} } as unknown as Events,
    secrets: { clean: (text: string) => text } as unknown as Secrets,
    installation: {} as Installation,
    remotes: {} as RemoteService,
    keys: {} as RecoveryKeyService,
    clock: testClock(),
    instance: { version: '0.1.0' },
    log: {} as Log,
    directory,
    retention: { days: 1, count: 1 }
  })
  await runner.endStale()
  return { ...seen, left: await readdir(directory) }
}

test('what a run left half is taken away while no other one can have begun', async t => {
  const { ended, whenReleased, left } = await runnerOf(t, [dead, dead])
  t.same(ended, ['dead'])
  t.same(whenReleased, [strangers], 'that of another installation stays')
  t.same(left.sort(), [strangers, 'next.part'], 'what the next one writes stays')
})

test('one that has ended by itself before the lock was free is let be', async t => {
  for (const now of [undefined, { ...dead, id: 'next', begun_at: null }]) {
    const { ended, left } = await runnerOf(t, [dead, now])
    t.same(ended, [])
    t.same(left.sort(), ['archive.part', strangers, 'next.part'])
  }
})
