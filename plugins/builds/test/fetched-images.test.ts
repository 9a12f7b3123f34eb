import { randomUUID } from 'node:crypto'
import { type Database, definePlugin, kernel } from 'busbar/sdk'
import { createTestKernel } from 'busbar/sdk/testing'
import { type Test, test } from 'tap'
import { createImageName } from '../migrations/004-create-image-name.js'
import { createFetchedImage } from '../migrations/008-create-fetched-image.js'
import { removeCutFetches } from '../registry/cut-fetches.js'
import { everybody, type FetchedImage, FetchedImageStore } from '../registry/fetched-images.js'
import { ImageNameStore } from '../registry/image-names.js'
import { clock, log } from './kit.js'

const name = 'registry.example.com/team/app:1'
const repository = 'registry.example.com/team/app'
const digestOf = (letter: string): string => `sha256:${letter.repeat(64)}`

async function openStore(t: Test, now: () => Date = () => new Date()) {
  let db: Database | undefined
  const definition = definePlugin({
    id: 'fetches',
    needs: { db: kernel.database },
    migrations: [createImageName, createFetchedImage],
    start: ({ use }) => {
      db = use.db
      return {}
    }
  })
  const k = await createTestKernel({
    inline: [{ manifest: { id: 'fetches', grants: ['database'] }, definition }]
  })
  t.teardown(async () => await k.close())
  if (db === undefined) throw new Error('the plugin has not started')
  const store = new FetchedImageStore(db, { now }, new ImageNameStore(db))
  const fetched = async (
    holder: string,
    digest = digestOf('a'),
    layers: readonly string[] = [digestOf('1')]
  ): Promise<FetchedImage> => {
    const handle = await store.begin({ holder, repository, digest })
    const image = { holder, repository, digest, handle, layers }
    await store.settle(image, name)
    return image
  }
  return { store, fetched }
}

test('what an application was handed is its own, and what everybody may have is everybody’s', async t => {
  const { store, fetched } = await openStore(t)
  const [owner, other] = [randomUUID(), randomUUID()]
  const own = await fetched(owner)
  t.same(await store.find(owner, name), own)
  t.same(await store.find(owner, `${repository}@${own.digest}`), own)
  t.equal(await store.find(other, name), undefined)
  t.equal(await store.find(other, `${repository}@${own.digest}`), undefined)
  t.same(await store.withFirstLayer(other, digestOf('1')), [])
  t.same(await store.withFirstLayer(everybody, digestOf('1')), [])
  t.equal(await store.isOpenTo(other, [own.handle]), false)
  t.equal(await store.isOpenTo(owner, ['x:1', own.handle]), true)

  const open = await fetched(everybody)
  t.not(open.handle, own.handle)
  t.same(await store.find(other, 'registry.example.com/team/app:1'), open)
  t.same(await store.withFirstLayer(other, digestOf('1')), [open])
  t.equal((await store.withFirstLayer(owner, digestOf('1'))).length, 2)
  t.equal(await store.isOpenTo(other, [open.handle]), true)
})

test('a name on the engine is the same for all who fetch the same, and nobody else can guess it', async t => {
  const { store } = await openStore(t)
  const digest = digestOf('a')
  const handles = await Promise.all(
    [1, 2].map(async () => await store.begin({ holder: everybody, repository, digest }))
  )
  t.equal(handles[0], handles[1])
  t.match(handles[0], /^busbar-fetched-[0-9a-f]{40}:latest$/)
  const another = await openStore(t)
  t.not(await another.store.begin({ holder: everybody, repository, digest }), handles[0])
})

test('a tag that has moved stands for the new image, and the old one stays until it is released', async t => {
  const { store, fetched } = await openStore(t)
  const owner = randomUUID()
  const old = await fetched(owner)
  const young = await fetched(owner, digestOf('b'))
  t.same(await store.find(owner, name), young)
  t.same(await store.find(owner, `${repository}@${old.digest}`), old)
  t.same(await store.release(owner, `${repository}@${old.digest}`), [old.handle])
  t.equal(await store.find(owner, `${repository}@${old.digest}`), undefined)
  t.same(await store.release(owner, `${repository}@${old.digest}`), [])
  t.same(await store.releaseAll(owner), [young.handle])
  t.equal(await store.find(owner, name), undefined)
})

test('what a fetch that was cut off has left goes, and nothing that came to its end', async t => {
  let now = new Date('2026-01-01T00:00:00Z')
  const { store, fetched } = await openStore(t, () => now)
  const ended = await fetched(everybody)
  await store.begin({ holder: everybody, repository, digest: ended.digest })
  const cut = await store.begin({ holder: everybody, repository, digest: digestOf('c') })
  now = new Date('2026-01-01T02:00:00Z')
  const late = await store.begin({ holder: everybody, repository, digest: digestOf('d') })
  const removed: string[] = []
  const ending = new AbortController()
  const sweep = removeCutFetches(
    {
      runtime: {
        removeImage: async handle => {
          removed.push(handle)
          ending.abort()
        }
      },
      fetched: store,
      clock: { ...clock, now: () => now },
      log,
      longestMs: 3600_000
    },
    ending.signal
  )
  await sweep.catch(() => undefined)
  t.same(removed, [cut])
  t.same(await store.begunBefore(new Date('2026-01-01T03:00:00Z')), [late])
})
