import { setImmediate as turn } from 'node:timers/promises'
import type { EngineDisk } from 'busbar/api/builds'
import type { ContainerDiskUse, ContainerFileUse } from 'busbar/api/containers'
import { until } from 'busbar/sdk/testing'
import { test } from 'tap'
import { DiskGuard } from '../disk/disk-guard.js'

const use = (id: string, bytes = 2000): ContainerDiskUse => ({
  id,
  owner: { projectId: 'p' },
  isRunning: true,
  bytes
})
const files = (id: string, inodes: number): ContainerFileUse => ({
  id,
  owner: { projectId: id },
  isRunning: true,
  inodes,
  recentInodes: inodes,
  namelessBytes: 0
})

/** Looks at each of the disks in turn, at the last one until it is enough, and says what it asked of the engine and what it warned of. */
async function looked(
  disks: ReadonlyArray<EngineDisk | undefined>,
  parts: {
    uses?: readonly ContainerDiskUse[]
    fileUse?: () => Promise<readonly ContainerFileUse[]>
    limits?: { bytes: number; inodes: number }
    isEnough: (asked: readonly string[], warned: readonly string[]) => boolean
  }
): Promise<{ asked: string[]; warned: string[] }> {
  const end = new AbortController()
  const asked: string[] = []
  const warned: string[] = []
  const silent = () => {}
  const left = [...disks]
  const guard = new DiskGuard({
    runtime: {
      diskUse: async () => {
        asked.push('bytes')
        return parts.uses ?? []
      },
      fileUse: async () => {
        asked.push('files')
        return (await parts.fileUse?.()) ?? []
      },
      stop: async (id: string) => {
        asked.push(`stop ${id}`)
        if (id === 'stuck') throw new Error('the engine does not stop it')
      },
      remove: async (id: string) => {
        asked.push(`remove ${id}`)
      }
    },
    engineDisk: { read: async () => (left.length > 1 ? left.shift() : left[0]) },
    limits: parts.limits ?? { bytes: 0, inodes: 0 },
    clock: {
      now: () => new Date(),
      sleep: async () => {
        await turn()
      }
    },
    log: {
      debug: silent,
      info: silent,
      warn: (_fields: object, text: string) => {
        warned.push(text)
      },
      error: silent
    },
    store: { change: async () => {} }
  } as unknown as ConstructorParameters<typeof DiskGuard>[0])
  const running = guard.run(end.signal)
  await until(() => parts.isEnough(asked, warned), 'the guard to have done what it is to do')
  end.abort()
  await running
  return { asked, warned }
}

/** Its inodes end first. */
const mebi = 2 ** 20
const disk = (free: number): EngineDisk => ({
  freeBytes: Math.min(free * 16_384, 100_000 * mebi),
  floorBytes: 1000 * mebi,
  inodes: { free, bytesEach: 16_384 }
})

test('a container that cannot be stopped does not keep others from being stopped', async t => {
  const { asked } = await looked([undefined], {
    uses: [use('stuck'), use('other')],
    limits: { bytes: 1000, inodes: 0 },
    isEnough: calls => calls.includes('stop other')
  })
  t.same(asked.slice(0, 3), ['bytes', 'stop stuck', 'stop other'])
})

test('files are not counted while there is room, nor bytes where inodes are what is short', async t => {
  const { asked } = await looked([disk(6_000_000), disk(5_900_000), disk(60_000)], {
    uses: [use('old', 500)],
    fileUse: async () => [files('taker', 5_000_000), files('old', 900)],
    isEnough: calls => calls.includes('remove taker')
  })
  t.same(asked.slice(0, 3), ['bytes', 'files', 'remove taker'])
})

test('files are counted with room where one may have made more than it may', async t => {
  const { asked } = await looked([disk(6_000_000), disk(5_900_000), disk(5_700_000)], {
    fileUse: async () => [files('over', 1001), files('at', 1000)],
    limits: { bytes: 0, inodes: 1000 },
    isEnough: calls => calls.includes('stop over')
  })
  t.same(asked.slice(0, 4), ['bytes', 'bytes', 'files', 'stop over'])
})

test('where files cannot be counted, nobody goes for it and the log says so once', async t => {
  const { asked, warned } = await looked([disk(6_000_000), disk(60_000), disk(60_000), disk(60_000)], {
    uses: [use('innocent', 500)],
    fileUse: async () => await Promise.reject(new Error('there is no find')),
    isEnough: calls => calls.filter(one => one === 'files').length > 2
  })
  t.notOk(asked.some(one => one.startsWith('remove')))
  t.equal(warned.filter(text => text.includes('cannot be counted')).length, 1)
})
