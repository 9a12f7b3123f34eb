import { randomUUID } from 'node:crypto'
import { test } from 'tap'
import { everybody, type FetchedImage, type FetchedImageStore } from '../registry/fetched-images.js'
import { sweepUnusedImages } from '../registry/image-removal.js'
import { digestOf, name, openStore, repository } from './fetched-store.js'
import { clock, log } from './kit.js'

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
  const { begin } = await openStore(t)
  const digest = digestOf('a')
  const [first, second] = await Promise.all([begin(digest), begin(digest)])
  t.equal(first.handle, second.handle)
  t.match(first.handle, /^busbar-fetched-[0-9a-f]{40}:latest$/)
  const another = await openStore(t)
  t.not((await another.begin(digest)).handle, first.handle)
})

test('a tag that has moved stands for the new image, and the old one stays while it is kept', async t => {
  const { store, fetched } = await openStore(t)
  const owner = randomUUID()
  const old = await fetched(owner)
  const young = await fetched(owner, digestOf('b'))
  t.same(await store.find(owner, name, 'container'), young)
  t.same(await store.find(owner, `${repository}@${old.digest}`, 'container'), old)
})

const pinned = ({ digest }: Pick<FetchedImage, 'digest'>): string => `${repository}@${digest}`
const hours = (count: number): Date => new Date(Date.UTC(2026, 0, 1, count))
const minutes = (count: number): Date => new Date(hours(0).getTime() + count * 60_000)

async function allToRemove(store: FetchedImageStore, isShort = false, wasThere = true): Promise<string[]> {
  const found: string[] = []
  for (;;) {
    const handle = await store.nextToRemove({ isShort, tried: found })
    if (handle === undefined) return found.sort()
    await store.removed(handle, { wasThere })
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

test('an image that has become unused is removed by the round that finds it, however slow that is', async t => {
  let ticks = 0
  const start = hours(0).getTime()
  const { store, fetched } = await openStore(t, () => new Date(start + ticks++))
  const own = await fetched(randomUUID())
  await store.keep(own.holder, [])
  ticks += 1000 * 3600_000
  t.equal(await store.nextToRemove(), own.handle)
})

test('an application does without one of the images that it keeps', async t => {
  const { store, fetched } = await openStore(t)
  const [a, b] = [randomUUID(), randomUUID()]
  const shared = await fetched(everybody, digestOf('a'), { applicationId: a })
  await fetched(everybody, digestOf('a'), { applicationId: b })
  const own = await fetched(a, digestOf('b'))
  const keeps = async () =>
    (await store.kept()).map(({ applicationId, ...image }) => ({ applicationId, reference: pinned(image) }))
  const all = [
    { applicationId: a, reference: pinned(shared) },
    { applicationId: a, reference: pinned(own) },
    { applicationId: b, reference: pinned(shared) }
  ]
  t.same(new Set(await keeps()), new Set(all))
  t.equal((await store.kept()).find(({ digest }) => digest === own.digest)?.handle, own.handle)
  await store.drop(b, pinned(own))
  await store.drop(a, `${repository}@${digestOf('c')}`)
  t.equal((await keeps()).length, 3, 'nothing of others, nor of what there is not')
  await store.drop(a, pinned(shared))
  t.same(new Set(await keeps()), new Set(all.slice(1)))
  t.equal(await store.nextToRemove({ isShort: true }), undefined, 'the other one keeps it')
  await store.drop(a, pinned(own))
  t.equal(await store.nextToRemove({ isShort: true }), own.handle)
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

test('what the fetch of a process that died has left goes, and nothing that came to its end', async t => {
  let now = hours(0)
  const { store, fetched, begin } = await openStore(t, () => now)
  const ended = await fetched(everybody)
  await begin(ended.digest)
  const cut = await begin(digestOf('c'))
  const inUse = await begin(digestOf('d'))
  await store.keep(randomUUID(), [])
  now = minutes(2)
  await begin(digestOf('e'))
  const asked: string[] = []
  const ending = new AbortController()
  const sweep = sweepUnusedImages(
    {
      imageService: {
        continuedImages: async () => new Set(),
        image: async () => ({ id: 'x', repoDigests: [], exposedPorts: [], sizeBytes: 1 }),
        removeImage: async handle => {
          asked.push(handle)
          if (asked.length === 2) ending.abort()
          if (handle === inUse.handle) throw new Error('a container uses it')
        }
      },
      fetched: store,
      clock: { ...clock, now: () => now },
      log
    },
    ending.signal
  )
  await sweep.catch(() => undefined)
  t.same(asked.sort(), [cut.handle, inUse.handle].sort())
  t.same(await allToRemove(store), [])
  now = minutes(4)
  t.equal(
    (await allToRemove(store)).length,
    2,
    'what was in use is tried again, and the late one was cut off too'
  )
  t.same(await store.find(randomUUID(), name, 'container'), ended)
})

test('a fetch that is under way keeps its image for as long as its process says so', async t => {
  let now = hours(0)
  const { store, begin } = await openStore(t, () => now)
  const { id, handle } = await begin(digestOf('a'))
  for (let minute = 0; minute < 5; minute += 0.5) {
    now = minutes(minute)
    t.same(await allToRemove(store, true), [], 'also where no room is left')
    await store.renew(id)
  }
  now = minutes(6)
  t.same(await allToRemove(store), [handle])
})

test('what a fetch that ended without a use has left is to go at once, unless another one fetches the same', async t => {
  const { store, begin } = await openStore(t)
  const [first, second] = [await begin(digestOf('a')), await begin(digestOf('a'))]
  await store.ended(first.id)
  t.same(await allToRemove(store, true), [])
  await store.ended(second.id)
  t.same(await allToRemove(store), [first.handle])
  t.same(await allToRemove(store, true), [])
})

test('what the engine goes on to take in after its fetch is looked for until it has come', async t => {
  let now = hours(0)
  const { store, begin } = await openStore(t, () => now)
  const [a, b] = [randomUUID(), randomUUID()]
  const [first, second] = [await begin(digestOf('a'), { applicationId: a }), await begin(digestOf('a'))]
  t.equal(await store.isLoading(a), false)
  await store.abandon(first.id)
  await store.abandon(second.id)
  t.equal(await store.isLoading(a), true)
  t.equal(await store.isLoading(b), false)
  t.same(await allToRemove(store, false, false), [first.handle], 'it is not there yet')
  t.same(await allToRemove(store), [])
  t.same(await allToRemove(store, true), [first.handle], 'one has come')
  t.same(await allToRemove(store, true), [first.handle], 'and the other')
  t.same(await allToRemove(store, true), [], 'and none more')
  t.equal(await store.isLoading(a), false)

  const third = await begin(digestOf('b'), { applicationId: a })
  await store.abandon(third.id)
  t.same(await allToRemove(store, false, false), [third.handle])
  await store.ended(third.id)
  t.equal(await store.isLoading(a), false)
  t.same(await allToRemove(store), [third.handle], 'at once when the engine is done')

  const fourth = await begin(digestOf('c'), { applicationId: a })
  await store.abandon(fourth.id)
  now = minutes(2)
  t.equal(await store.isLoading(a), false, 'nobody waits for what a dead process waited for')
  t.same(await allToRemove(store, false, false), [fourth.handle])
  now = hours(3)
  t.same(await allToRemove(store, false, false), [fourth.handle], 'for the last time')
  t.same(await allToRemove(store, true), [])
})

test('a fetch that begins while the same image is removed is noted all the same', async t => {
  let now = hours(0)
  const { store, fetched, begin } = await openStore(t, () => now)
  const image = await fetched(everybody, digestOf('a'), { applicationId: randomUUID(), purpose: 'base' })
  now = hours(24 * 8)
  const removal = await store.nextToRemove()
  t.equal(removal, image.handle)
  t.equal(await store.nextToRemove(), undefined, 'one removes it')
  await begin(image.digest)
  if (removal !== undefined) await store.removed(removal, { wasThere: true })
  now = hours(24 * 9)
  t.same(await allToRemove(store), [image.handle], 'and it did not come to its end')
})

test('on a full disk bases go that no build claims, also such as were just used', async t => {
  let now = hours(0)
  const { store, fetched } = await openStore(t, () => now)
  const a = randomUUID()
  const old = await fetched(everybody, digestOf('a'), { applicationId: a, purpose: 'base' })
  const kept = await fetched(everybody, digestOf('b'), { applicationId: a })
  now = hours(2)
  const young = await fetched(everybody, digestOf('c'), { applicationId: a, purpose: 'base' })
  t.same(await allToRemove(store, true), [old.handle, young.handle].sort())
  t.same(await store.find(a, pinned(kept), 'container'), kept)
  t.equal(await store.find(a, pinned(young), 'base'), undefined)
})

test('a fetch that was asked for earlier and ends later sets no name back', async t => {
  const { store, fetched } = await openStore(t, () => hours(2))
  const young = await fetched(everybody, digestOf('b'), { askedAt: hours(1) })
  const slow = await fetched(everybody, digestOf('a'), { askedAt: hours(0) })
  t.same(await store.find(randomUUID(), name, 'base'), young)
  t.same(await store.find(randomUUID(), pinned(slow), 'container'), slow)
})
