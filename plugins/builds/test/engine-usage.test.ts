import type { ContainerRuntime } from 'busbar/api/containers'
import type { Clock } from 'busbar/sdk'
import { testClock, until } from 'busbar/sdk/testing'
import { test } from 'tap'
import { EngineUsage } from '../engines/engine-usage.js'
import { clock } from './kit.js'

const kib = 1024

/** Engines that hold what a test says. */
function lab(time: Clock = testClock()) {
  const kilobytes = new Map<string, number>()
  /** How many names those have that cannot be walked through in time. */
  const late = new Map<string, number>()
  const hanging = new Map<string, () => void>()
  const pruned: string[] = []
  const runtime: Pick<ContainerRuntime, 'exec' | 'fileUse'> = {
    exec: async (id, argv, { onLine }) => {
      const held = kilobytes.get(id) ?? 0
      const isWalk = argv.includes('du')
      if (isWalk && hanging.has(id)) await new Promise<void>(resolve => hanging.set(id, resolve))
      if (isWalk && late.has(id)) return 143
      onLine({
        stream: 'stdout',
        text: isWalk ? `${held}\t/var/lib/builder` : String(late.get(id) ?? held),
        ts: ''
      } as never)
      return 0
    },
    fileUse: async () => [
      { id: 'shared', bytes: 10 * kib, namelessBytes: 2 * kib, inodes: 10, isCut: false } as never
    ]
  }
  const usage = new EngineUsage({
    runtime,
    clock: time,
    prune: async projectId => void pruned.push(projectId),
    log: { warn: () => {} } as never
  })
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
  return { kilobytes, late, hanging, pruned, usage, measured, begin }
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

void test('all that an engine holds counts for the builds that keep it, in equal parts', async t => {
  const { kilobytes, usage, measured, begin } = lab()
  kilobytes.set('shared', 2000)
  const ends = [begin('holder', 'shared'), begin('other', 'shared')]
  await measured('holder', 0)
  const held = async () => (await usage.read()).map(({ bytes, heldBytes }) => ({ bytes, heldBytes }))
  t.same(await held(), [
    { bytes: 0, heldBytes: 1000 * kib },
    { bytes: 0, heldBytes: 1000 * kib }
  ])
  t.equal(usage.heldBy('shared'), 2000 * kib)
  kilobytes.set('shared', 1000)
  const files = await usage.readFiles({ eachMs: 1000, allMs: 1000, most: 10 })
  t.same(
    files.map(({ heldBytes }) => heldBytes),
    // With what its own container has beside its volume.
    [506 * kib, 506 * kib]
  )
  // Whether it is measured once more before they end.
  kilobytes.set('shared', 2000)
  for (const end of ends) end()
  await until(async () => (await usage.read()).length === 0, 'its builds to have ended')
  t.equal(usage.heldBy('shared'), 2000 * kib, 'its cache is still there')
})

void test('a build in an engine with more files than can be measured is told of, and its cache is cleared', async t => {
  const { late, pruned, usage, begin } = lab()
  late.set('farm', 4_500_000)
  late.set('slow', 1000)
  const end = begin('a', 'farm')
  begin('b', 'slow')
  const uncountable = async () =>
    (await usage.read()).flatMap(({ owner, isUncountable }) => (isUncountable ? [owner.deploymentId] : []))
  await until(async () => (await uncountable()).length > 0, 'the engine is known to be uncountable')
  await until(() => pruned.length > 1, 'both are cleared')
  t.same(await uncountable(), ['a'], 'of one with few files it is the machine that is slow')
  end()
  await until(
    () => pruned.filter(one => one === 'farm').length > 1,
    'what it has used is cleared when it has ended'
  )
})

void test('an engine that takes long to be measured does not keep others from it', async t => {
  const { kilobytes, hanging, usage, measured, begin } = lab(clock)
  hanging.set('slow', () => {})
  begin('a', 'slow')
  await usage.read()
  kilobytes.set('other', 10)
  begin('b', 'other')
  await usage.read()
  kilobytes.set('other', 30)
  await measured('b', 20 * kib)
  hanging.get('slow')?.()
  t.pass()
})
