import type { ContainerDiskUse } from 'busbar/api/containers'
import { test } from 'tap'
import { DiskGuard } from '../disk/disk-guard.js'

const use = (id: string): ContainerDiskUse => ({
  id,
  owner: { projectId: 'p' },
  isRunning: true,
  bytes: 2000
})

test('a container that cannot be stopped does not keep others from being stopped', async t => {
  const end = new AbortController()
  const asked: string[] = []
  const silent = () => {}
  const guard = new DiskGuard({
    runtime: {
      diskUse: async () => [use('stuck'), use('other')],
      stop: async (id: string) => {
        asked.push(id)
        if (id === 'stuck') throw new Error('the engine does not stop it')
      },
      remove: async () => {}
    },
    engineDisk: { read: async () => undefined },
    limitBytes: 1000,
    clock: {
      now: () => new Date(),
      sleep: async () => {
        end.abort()
      }
    },
    log: { debug: silent, info: silent, warn: silent, error: silent },
    store: { change: async () => {} }
  } as unknown as ConstructorParameters<typeof DiskGuard>[0])
  await guard.run(end.signal)
  t.same(asked, ['stuck', 'other'])
})
