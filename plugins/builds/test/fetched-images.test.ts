import { randomUUID } from 'node:crypto'
import { type Database, definePlugin, kernel } from 'busbar/sdk'
import { createTestKernel } from 'busbar/sdk/testing'
import { type Test, test } from 'tap'
import { createImageName } from '../migrations/004-create-image-name.js'
import { createFetchedImage } from '../migrations/008-create-fetched-image.js'
import { everybody, type FetchedImage, FetchedImageStore, type Purpose } from '../registry/fetched-images.js'
import { ImageNameStore } from '../registry/image-names.js'
import { sweepUnusedImages } from '../registry/image-removal.js'
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
  const store = new FetchedImageStore(db, { now }, new ImageNameStore(db), 3600_000)
  const fetched = async (
    holder: string,
    digest = digestOf('a'),
    {
      purpose = 'container',
      applicationId = holder,
      askedAt = now()
    }: { purpose?: Purpose; applicationId?: string; askedAt?: Date } = {}
  ): Promise<FetchedImage> => {
    const layers = [digestOf('1')]
    const handle = await store.begin({ holder, repository, digest })
    const image = { holder, repository, digest, handle, layers }
    await store.settle(image, { name, askedAt, applicationId, purpose })
    return image
  }
  return { store, fetched }
}

test('what an application was handed is its own, and what everybody may have is everybody’s', async t => {
  const { store, fetched } = await openStore(t)
  const [owner, other] = [randomUUID(), randomUUID()]
  const own = await fetched(owner)
  t.same(await store.find(owner, name, 'container'), own)
  t.same(await store.find(owner, `${repository}@${own.digest}`, 'container'), own)
  t.equal(await store.find(other, name, 'container'), undefined)
  t.equal(await store.find(other, `${repository}@${own.digest}`, 'container'), undefined)
  t.same(await store.withFirstLayer(other, digestOf('1')), [])
  t.same(await store.withFirstLayer(everybody, digestOf('1')), [])
  t.equal(await store.isOpenTo(other, [own.handle]), false)
  t.equal(await store.isOpenTo(owner, ['x:1', own.handle]), true)

  const open = await fetched(everybody)
  t.not(open.handle, own.handle)
  t.same(await store.find(other, 'registry.example.com/team/app:1', 'container'), open)
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

test('a tag that has moved stands for the new image, and the old one stays while it is kept', async t => {
  const { store, fetched } = await openStore(t)
  const owner = randomUUID()
  const old = await fetched(owner)
  const young = await fetched(owner, digestOf('b'))
  t.same(await store.find(owner, name, 'container'), young)
  t.same(await store.find(owner, `${repository}@${old.digest}`, 'container'), old)
})

const pinned = ({ digest }: FetchedImage): string => `${repository}@${digest}`
const hours = (count: number): Date => new Date(Date.UTC(2026, 0, 1, count))

async function allToRemove(store: FetchedImageStore, isShort?: boolean): Promise<string[]> {
  const found: string[] = []
  for (;;) {
    const handle = await store.nextToRemove(isShort)
    if (handle === undefined) return found.sort()
    await store.removed(handle)
    found.push(handle)
  }
}

test('an image goes once no application keeps it and nobody has asked for it lately', async t => {
  let now = hours(0)
  const { store, fetched } = await openStore(t, () => now)
  const [a, b] = [randomUUID(), randomUUID()]
  const shared = await fetched(everybody, digestOf('a'), { applicationId: a })
  await fetched(everybody, digestOf('a'), { applicationId: b })
  const own = await fetched(a, digestOf('b'))
  now = hours(1000)
  t.same(await allToRemove(store), [], 'all are kept')

  await store.keep(a, [])
  t.same(await allToRemove(store), [own.handle], 'what B keeps is not A’s to remove')
  t.same(await store.find(b, pinned(shared), 'container'), shared)
  t.equal(await store.find(a, pinned(own), 'container'), undefined)

  await store.keep(b, [pinned(shared), 'busbar-app:0123', 'sha256:abc'])
  now = hours(2000)
  t.same(await allToRemove(store), [])
  await store.keep(b, ['busbar-app:0123'])
  await store.find(a, name, 'container')
  t.same(await allToRemove(store), [], 'it was asked for just now')
  now = hours(2002)
  t.same(await allToRemove(store), [shared.handle])
  t.equal(await store.find(a, name, 'container'), undefined)
})

test('an application that asks for an image of its past keeps it again, and nothing of others', async t => {
  let now = hours(0)
  const { store, fetched } = await openStore(t, () => now)
  const [a, b] = [randomUUID(), randomUUID()]
  const image = await fetched(a)
  await store.keep(a, [])
  await store.keep(b, [pinned(image)])
  await store.keep(a, [pinned(image)])
  now = hours(1000)
  t.same(await allToRemove(store), [])
  await store.keep(a, [])
  t.same(await allToRemove(store), [image.handle])
})

test('a base stays for a week after the last build that asked for it', async t => {
  let now = hours(0)
  const { store, fetched } = await openStore(t, () => now)
  const base = await fetched(everybody, digestOf('a'), { purpose: 'base', applicationId: randomUUID() })
  now = hours(24 * 6)
  t.same(await store.find(randomUUID(), name, 'base'), base)
  await store.find(randomUUID(), name, 'container')
  now = hours(24 * 12)
  t.same(await allToRemove(store), [])
  now = hours(24 * 13 + 1)
  t.same(await allToRemove(store), [base.handle])
})

test('with an application goes what it alone was handed, at once', async t => {
  const { store, fetched } = await openStore(t)
  const [a, b] = [randomUUID(), randomUUID()]
  const own = await fetched(a)
  const others = await fetched(b)
  const open = await fetched(everybody, digestOf('c'), { applicationId: a })
  await store.forget(a)
  await store.forget(a)
  t.same(await allToRemove(store), [own.handle])
  t.same(await store.find(b, pinned(others), 'container'), others)
  t.same(await store.find(b, pinned(open), 'container'), open)
})

test('what a fetch that was cut off has left goes, and nothing that came to its end', async t => {
  let now = hours(0)
  const { store, fetched } = await openStore(t, () => now)
  const ended = await fetched(everybody)
  await store.begin({ holder: everybody, repository, digest: ended.digest })
  const cut = await store.begin({ holder: everybody, repository, digest: digestOf('c') })
  const inUse = await store.begin({ holder: everybody, repository, digest: digestOf('d') })
  await store.keep(randomUUID(), [])
  now = hours(2)
  await store.begin({ holder: everybody, repository, digest: digestOf('e') })
  const asked: string[] = []
  const ending = new AbortController()
  const sweep = sweepUnusedImages(
    {
      runtime: {
        removeImage: async handle => {
          asked.push(handle)
          if (asked.length === 2) ending.abort()
          if (handle === inUse) throw new Error('a container uses it')
        }
      },
      fetched: store,
      clock: { ...clock, now: () => now },
      log
    },
    ending.signal
  )
  await sweep.catch(() => undefined)
  t.same(asked.sort(), [cut, inUse].sort())
  t.same(await allToRemove(store), [])
  now = hours(4)
  t.equal(
    (await allToRemove(store)).length,
    2,
    'what was in use is tried again, and the late one was cut off too'
  )
  t.same(await store.find(randomUUID(), name, 'container'), ended)
})

test('a fetch that begins while the same image is removed is noted all the same', async t => {
  let now = hours(0)
  const { store, fetched } = await openStore(t, () => now)
  const image = await fetched(everybody, digestOf('a'), { applicationId: randomUUID(), purpose: 'base' })
  now = hours(24 * 8)
  const removal = await store.nextToRemove()
  t.equal(removal, image.handle)
  t.equal(await store.nextToRemove(), undefined, 'one removes it')
  await store.begin({ holder: everybody, repository, digest: image.digest })
  if (removal !== undefined) await store.removed(removal)
  now = hours(24 * 9)
  t.same(await allToRemove(store), [image.handle], 'and it did not come to its end')
})

test('on a full disk bases go that no build is about to use', async t => {
  let now = hours(0)
  const { store, fetched } = await openStore(t, () => now)
  const a = randomUUID()
  const old = await fetched(everybody, digestOf('a'), { applicationId: a, purpose: 'base' })
  const kept = await fetched(everybody, digestOf('b'), { applicationId: a })
  now = hours(2)
  const young = await fetched(everybody, digestOf('c'), { applicationId: a, purpose: 'base' })
  t.same(await allToRemove(store, true), [old.handle])
  t.same(await store.find(a, pinned(kept), 'container'), kept)
  t.same(await store.find(a, pinned(young), 'base'), young)
})

test('a fetch that was asked for earlier and ends later sets no name back', async t => {
  const { store, fetched } = await openStore(t, () => hours(2))
  const young = await fetched(everybody, digestOf('b'), { askedAt: hours(1) })
  const slow = await fetched(everybody, digestOf('a'), { askedAt: hours(0) })
  t.same(await store.find(randomUUID(), name, 'base'), young)
  t.same(await store.find(randomUUID(), pinned(slow), 'container'), slow)
})
