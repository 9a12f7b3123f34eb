import { randomUUID } from 'node:crypto'
import { test } from 'tap'
import { everybody, type FetchedImageStore } from '../registry/fetched-images.js'
import type { ImageClaims } from '../registry/image-claims.js'
import { removeUnusedImages } from '../registry/image-removal.js'
import { digestOf, name, openStore } from './fetched-store.js'
import { log } from './kit.js'

const hours = (count: number): Date => new Date(Date.UTC(2026, 0, 1, count))
const minutes = (count: number): Date => new Date(hours(0).getTime() + count * 60_000)

async function removeAll(store: FetchedImageStore): Promise<string[]> {
  const found: string[] = []
  for (;;) {
    const handle = await store.nextToRemove({ isShort: true, tried: found })
    if (handle === undefined) return found
    await store.removed(handle, { wasThere: true })
    found.push(handle)
  }
}

/** A preparation that ends, or fails, when it is told to. */
async function prepare(claims: ImageClaims, isNotedLater = false, applicationId: string = randomUUID()) {
  const deploymentId = randomUUID()
  let end = (): void => {}
  let fail = (_error: Error): void => {}
  const told = new Promise<void>((resolve, reject) => {
    end = resolve
    fail = reject
  })
  const failure = new Error('exit code 1')
  let ended: Promise<void> = Promise.resolve()
  await new Promise<void>((resolve, reject) => {
    ended = claims.during({ applicationId, deploymentId, isNotedLater }, async () => {
      resolve()
      await told
    })
    ended.catch(reject)
  })
  return {
    deploymentId,
    applicationId,
    end: async () => {
      end()
      await ended
    },
    fail: async () => {
      fail(failure)
      await ended.catch(() => undefined)
    }
  }
}

const asBase = (deploymentId: string) => ({ purpose: 'base', applicationId: 'any', deploymentId }) as const

test('a base stays on a short disk while a build needs it, and goes at once when the last one has ended', async t => {
  let unneeded = 0
  const { store, fetched, openClaims } = await openStore(t)
  const claims = openClaims({ onEnd: () => unneeded++ })
  const [one, another] = [await prepare(claims), await prepare(claims)]
  const base = await fetched(everybody, digestOf('a'), asBase(one.deploymentId))
  t.equal(await claims.othersHold(another.deploymentId), true)
  t.equal(await claims.othersHold(one.deploymentId), false)
  const own = await fetched(everybody, digestOf('b'), asBase(one.deploymentId))
  t.same(
    await store.find('any', `registry.example.com/team/app@${base.digest}`, 'base', another.deploymentId),
    base
  )
  t.same(await removeAll(store), [])

  t.equal(await claims.othersHold(one.deploymentId), false, 'it shares the only one')
  await one.fail()
  t.equal(await claims.othersHold(another.deploymentId), false)
  t.equal(unneeded, 1)
  t.same(await removeAll(store), [own.handle], 'the build that goes on shares the other one')
  await another.end()
  t.same(await removeAll(store), [base.handle], 'moments after it was used')
})

test('what deployments under way hold is told by owner, without what an application keeps', async t => {
  const { k, fetched, openClaims } = await openStore(t)
  const claims = openClaims()
  const admin = await k.as.session()
  const { body: project } = await admin.post('/api/projects', { name: 'Held', slug: 'held' })
  const { body: application, status } = await admin.post(`/api/projects/${project.id}/applications`, {
    name: 'web',
    type: 'image',
    build_type: 'image',
    source_image: 'busybox:lab'
  })
  t.equal(status, 201)
  const one = await prepare(claims, false, application.id)
  const unknown = await prepare(claims)
  const base = await fetched(everybody, digestOf('a'), asBase(one.deploymentId))
  await fetched(everybody, digestOf('b'), { deploymentId: one.deploymentId, applicationId: 'keeps' })
  const found = await claims.holdings()
  t.same(
    found.find(({ deploymentId }) => deploymentId === one.deploymentId),
    { deploymentId: one.deploymentId, ownerId: project.user_id, handles: [base.handle] }
  )
  t.same(
    found.find(({ deploymentId }) => deploymentId === unknown.deploymentId),
    { deploymentId: unknown.deploymentId, ownerId: unknown.applicationId, handles: [] }
  )
  await one.end()
  t.same((await claims.holdings()).length, 1)
  await unknown.end()
})

test('a fetch that is under way for another application may give back what it holds', async t => {
  const { store, begin, openClaims } = await openStore(t)
  const claims = openClaims()
  const own = await prepare(claims)
  await begin(digestOf('a'), { applicationId: own.applicationId })
  t.equal(await claims.othersHold(own.deploymentId), false)
  const { id } = await begin(digestOf('b'))
  t.equal(await claims.othersHold(own.deploymentId), true)
  await store.ended(id)
  t.equal(await claims.othersHold(own.deploymentId), false)
  await own.end()
})

test('what a build looks up that has ended is no claim', async t => {
  const { store, fetched, openClaims } = await openStore(t)
  const one = await prepare(openClaims())
  await one.end()
  const base = await fetched(everybody, digestOf('a'), asBase(one.deploymentId))
  await store.find('any', name, 'base', one.deploymentId)
  t.same(await removeAll(store), [base.handle])
})

test('of a disk that is short goes first what was used longest ago', async t => {
  let now = minutes(0)
  const { store, fetched } = await openStore(t, () => now)
  const handles: string[] = []
  for (const letter of ['a', 'b', 'c']) {
    now = minutes(handles.length)
    handles.push((await fetched(everybody, digestOf(letter), asBase(''))).handle)
  }
  now = minutes(5)
  await store.find('any', `registry.example.com/team/app@${digestOf('a')}`, 'base')
  t.same(await removeAll(store), [handles[1], handles[2], handles[0]])
})

test('claims end with their process, a minute after it has died', async t => {
  let now = minutes(0)
  const { store, fetched, openClaims } = await openStore(t, () => now)
  const dead = openClaims({ renews: false })
  const held = openClaims({ renews: false })
  const [ofDead, ofHeld] = [await prepare(dead), await prepare(held)]
  const lost = await fetched(everybody, digestOf('a'), asBase(ofDead.deploymentId))
  const needed = await fetched(everybody, digestOf('b'), asBase(ofHeld.deploymentId))
  now = minutes(0.9)
  t.same(await removeAll(store), [])
  t.same(await openClaims().elsewhere(), new Set([ofDead.applicationId, ofHeld.applicationId]))
  t.same(await dead.elsewhere(), new Set([ofHeld.applicationId]))
  now = minutes(30)
  await held.renew()
  t.same(await openClaims().elsewhere(), new Set([ofHeld.applicationId]))
  t.same(
    await removeAll(store),
    [lost.handle],
    'a process that was held up says so before it removes anything'
  )
  await ofHeld.end()
  t.same(await removeAll(store), [needed.handle])
})

test('what was pulled stays claimed until its deployment has noted it, and what is kept stays', async t => {
  let now = minutes(0)
  const { store, fetched, openClaims } = await openStore(t, () => now)
  const pull = await prepare(openClaims({ renews: false }), true)
  const { applicationId, deploymentId } = pull
  const image = await fetched(everybody, digestOf('a'), { applicationId, deploymentId })
  await pull.end()
  // By the records of before this deployment.
  await store.keep(applicationId, [])
  t.same(await removeAll(store), [])
  const pinned = `registry.example.com/team/app@${image.digest}`
  await store.keep(applicationId, [pinned])
  now = hours(100)
  t.same(await removeAll(store), [], 'an application keeps it')
  await store.keep(applicationId, [])
  t.same(await removeAll(store), [image.handle])

  const failed = await prepare(openClaims({ renews: false }), true)
  const other = await fetched(everybody, digestOf('b'), {
    applicationId: 'any',
    deploymentId: failed.deploymentId
  })
  await store.keep('any', [])
  await failed.fail()
  t.same(await removeAll(store), [other.handle], 'a pull that failed holds nothing')
})

test('of a claim and a removal at once, one comes first', async t => {
  const { store, fetched, openClaims } = await openStore(t)
  const claims = openClaims()
  let [claimed, removed] = [0, 0]
  for (let round = 0; round < 40; round++) {
    const build = await prepare(claims)
    await fetched(everybody, digestOf('a'), asBase(''))
    const [found, handles] = await Promise.all([
      store.find('any', name, 'base', build.deploymentId),
      removeAll(store)
    ])
    if (found === undefined) removed++
    else claimed++
    t.equal(handles.length, found === undefined ? 1 : 0, 'who was given it has it')
    await build.end()
    await removeAll(store)
  }
  t.comment(`${claimed} were claimed, ${removed} removed`)
})

test('who fetches what is on its way from the engine can tell, until it is gone, stays, or a minute is over', async t => {
  let now = minutes(0)
  const { store, fetched, begin } = await openStore(t, () => now)
  const removing = async (letter: string): Promise<string> => {
    const { handle } = await fetched(everybody, digestOf(letter), asBase(''))
    t.equal(await store.isBeingRemoved(handle), false)
    t.equal(await store.nextToRemove({ isShort: true }), handle)
    t.equal(await store.nextToRemove({ isShort: true }), undefined, 'one at a time')
    await begin(digestOf(letter))
    t.equal(await store.isBeingRemoved(handle), true)
    return handle
  }
  await store.removed(await removing('a'), { wasThere: true })
  t.equal(await store.isBeingRemoved((await begin(digestOf('a'))).handle), false)
  const second = await removing('b')
  await store.stays(second)
  t.equal(await store.isBeingRemoved(second), false)
  const third = await removing('c')
  now = minutes(1.1)
  t.equal(await store.isBeingRemoved(third), false, 'the process that removed it has died')
})

test('an image of which others are made keeps its name: without it, it would take the same room', async t => {
  let now = hours(0)
  const { store, fetched } = await openStore(t, () => now)
  const { handle } = await fetched(everybody, digestOf('a'), asBase(''))
  let isContinued = true
  let listed = 0
  const removed: string[] = []
  const parts = {
    imageService: {
      image: async () => ({ id: 'base', repoDigests: [], exposedPorts: [], sizeBytes: 1 }),
      removeImage: async (reference: string) => {
        removed.push(reference)
      },
      continuedImages: async () => {
        listed++
        return new Set(isContinued ? ['base'] : [])
      }
    },
    fetched: store,
    log
  }
  await removeUnusedImages(parts, { isShort: true })
  t.same(removed, [])
  now = hours(0.5)
  await removeUnusedImages(parts)
  t.equal(listed, 1, 'it is not looked for all the time')
  isContinued = false
  await removeUnusedImages(parts, { isShort: true, signal: AbortSignal.abort() })
  t.same(removed, [], 'a platform that stops begins with none')
  await removeUnusedImages(parts, { isShort: true })
  t.same(removed, [handle])
})
