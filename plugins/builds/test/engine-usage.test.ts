import type { ContainerRuntime } from 'busbar/api/containers'
import { testClock, until } from 'busbar/sdk/testing'
import { test } from 'tap'
import { EngineUsage } from '../engines/engine-usage.js'

const kib = 1024

/** Engines that hold what a test says. */
function lab() {
  const kilobytes = new Map<string, number>()
  const runtime: Pick<ContainerRuntime, 'exec' | 'fileUse'> = {
    exec: async (id, argv, { onLine }) => {
      const held = kilobytes.get(id) ?? 0
      onLine({
        stream: 'stdout',
        text: argv[0] === 'du' ? `${held}\t/var/lib/builder` : String(held),
        ts: ''
      } as never)
      return 0
    },
    fileUse: async () => [
      { id: 'shared', bytes: 10 * kib, namelessBytes: 2 * kib, inodes: 10, isCut: false } as never
    ]
  }
  const usage = new EngineUsage({ runtime, clock: testClock() })
  /** What is measured next, which some of the looks before may still miss. */
  const measured = async (deploymentId: string, bytes: number): Promise<void> =>
    void (await until(
      async () =>
        (await usage.read()).some(use => use.owner.deploymentId === deploymentId && use.bytes === bytes),
      `${deploymentId} has ${bytes} bytes`
    ))
  const begin = (deploymentId: string, containerId: string): (() => void) => {
    const ended = new AbortController()
    void usage.during({ owner: { projectId: containerId, deploymentId }, containerId }, async () => {
      await new Promise(resolve => ended.signal.addEventListener('abort', resolve))
    })
    return () => ended.abort()
  }
  return { kilobytes, usage, measured, begin }
}

void test('builds that share an engine have together what was written in it', async t => {
  const { kilobytes, usage, measured, begin } = lab()
  kilobytes.set('shared', 1000)
  kilobytes.set('other', 50)
  const end = begin('a', 'shared')
  begin('b', 'shared')
  begin('c', 'other')
  await usage.read()
  kilobytes.set('shared', 1300)
  kilobytes.set('other', 60)
  await measured('a', 150 * kib)
  await measured('b', 150 * kib)
  await measured('c', 10 * kib)
  end()
  kilobytes.set('shared', 1500)
  await measured('b', 350 * kib)

  const files = await usage.readFiles({ eachMs: 1000, ms: 1000 } as never)
  t.match(
    files.find(({ owner }) => owner.deploymentId === 'b'),
    { bytes: 362 * kib, inodes: 1510, isCut: false }
  )
})

void test('what a build finds when it begins is none of its own, and what is cleared makes no room for more', async t => {
  const { kilobytes, usage, measured, begin } = lab()
  kilobytes.set('shared', 700)
  begin('a', 'shared')
  await usage.read()
  begin('b', 'shared')
  kilobytes.set('shared', 900)
  await measured('a', 200 * kib)
  t.equal((await usage.read()).find(({ owner }) => owner.deploymentId === 'b')?.bytes, 0)
  kilobytes.set('shared', 500)
  await measured('a', 0)
  kilobytes.set('shared', 1100)
  await measured('a', 300 * kib)
  await measured('b', 300 * kib)
})
