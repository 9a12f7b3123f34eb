import { randomUUID } from 'node:crypto'
import { once } from 'node:events'
import type { Readable } from 'node:stream'
import type { ImageInfo, ImageService } from 'busbar/api/images'
import { until } from 'busbar/sdk/testing'
import { type Test, test } from 'tap'
import { fetchImage } from '../registry/image-fetch.js'
import type { OfferedImage } from '../registry/registries.js'
import { openStore } from './fetched-store.js'
import { clock, log } from './kit.js'

const layer = `sha256:${'1'.repeat(64)}`
const image: ImageInfo = { id: 'x', repoDigests: [], exposedPorts: [], sizeBytes: 1, layers: [layer] }
const cancelled = new Error('cancelled')

/** An engine that comes to the end of nothing while it is listened to. What it was handed wholly is there when it `finishes`. */
async function openFetch(t: Test, { isWhole = true } = {}) {
  const { store } = await openStore(t)
  const steps: string[] = []
  const abandon = store.abandon.bind(store)
  store.abandon = async fetchId => {
    await abandon(fetchId)
    steps.push('noted')
  }
  const onEngine = new Set<string>()
  const removed: string[] = []
  const handed: string[] = []
  let finish = (): void => {}
  const imageService: Pick<ImageService, 'image' | 'load' | 'removeImage' | 'continuedImages'> = {
    continuedImages: async () => new Set(),
    image: async name => (onEngine.has(name) ? image : undefined),
    removeImage: async name => {
      onEngine.delete(name)
      removed.push(name)
    },
    load: async (archive: Readable, { name, signal, onAbandoned }) => {
      if (isWhole) await archive.resume().toArray()
      handed.push(name)
      const ended = new Promise<void>(resolve => {
        finish = () => {
          onEngine.add(name)
          resolve()
        }
      })
      if (signal.aborted !== true) await once(signal, 'abort')
      if (isWhole) onAbandoned?.(ended)
      throw signal.reason
    }
  }
  const applicationId = randomUUID()
  const lines: string[] = []
  const fetching = (digest: string) => {
    const cancel = new AbortController()
    const offered: OfferedImage = {
      digest: `sha256:${digest.repeat(64)}`,
      config: Buffer.from('{}'),
      layers: [],
      unpacked: () => ({ bytes: 1, inodes: 1, fault: undefined })
    } as unknown as OfferedImage
    const ended = fetchImage(
      {
        imageService,
        registries: { offer: async () => offered, checkOpen: async () => {} },
        fetched: store,
        room: { reserve: async () => ({ end: () => {} }) },
        clock,
        log
      },
      { name: 'registry.example.com/app:1', applicationId, deploymentId: randomUUID() },
      { log: ({ msg }) => lines.push(msg), signal: cancel.signal }
    )
    return { ended, cancel: () => cancel.abort(cancelled) }
  }
  // What is looked after until the engine is done would keep the process of a failed test.
  t.teardown(() => finish())
  return { store, fetching, handed, removed, lines, steps, applicationId, onEngine, finish: () => finish() }
}

test('what the engine goes on to take in for a fetch that was cut off is removed when it is there', async t => {
  const { fetching, handed, removed, lines, steps, finish, onEngine } = await openFetch(t)
  const first = fetching('a')
  await until(() => handed.length === 1, 'the engine to have all of it')
  first.cancel()
  await t.rejects(
    first.ended.finally(() => steps.push('failed')),
    cancelled
  )
  t.same(steps, ['noted', 'failed'], 'the next one, which may begin at once, finds it')

  const second = fetching('b')
  await until(() => lines.length > 0, 'the next one to wait')
  t.match(lines, [/waits until the engine is done with what an earlier deploy/])
  t.equal(handed.length, 1, 'the next one of the application waits')
  finish()
  await until(() => removed.length > 0, 'it to be removed')
  t.same(removed, [handed[0]])
  t.same([...onEngine], [])
  await until(() => handed.length === 2, 'the next one to go on')
  second.cancel()
  await t.rejects(second.ended, cancelled)
  finish()
  await until(() => removed.length === 2, 'that to be removed too')
})

test('a fetch that is cut off before the engine has all of it leaves nothing to look for', async t => {
  const { store, fetching, handed, applicationId } = await openFetch(t, { isWhole: false })
  const first = fetching('a')
  await until(() => handed.length === 1, 'the engine to have some of it')
  first.cancel()
  await t.rejects(first.ended, cancelled)
  t.equal(await store.isLoading(applicationId), false)
  await until(async () => {
    const left = await store.nextToRemove({ isShort: true })
    if (left !== undefined) await store.removed(left, { wasThere: false })
    return left === undefined
  }, 'nothing to be left')
})
