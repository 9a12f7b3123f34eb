import { createHash, randomBytes, randomUUID } from 'node:crypto'
import { Readable } from 'node:stream'
import { buffer } from 'node:stream/consumers'
import { gzipSync } from 'node:zlib'
import type { Owner } from 'busbar/api/containers'
import { type BuildUsage, type LoadOptions, loadedPrefix } from 'busbar/api/images'
import { until } from 'busbar/sdk/testing'
import type { Test } from 'tap'
import { pack } from 'tar-stream'
import { engineTest, type Lab, startLab } from './lab.js'

const forever = new AbortController().signal
const sha256 = (bytes: Buffer): string => `sha256:${createHash('sha256').update(bytes).digest('hex')}`

/** A layer with one file in it. */
async function layerOf(path: string, content: Buffer | string): Promise<Buffer> {
  const tar = pack()
  tar.entry({ name: path }, Buffer.from(content as string))
  tar.finalize()
  return await buffer(Readable.from(tar))
}

interface Archive {
  /** Null: it names none. */
  readonly name: string | null
  readonly layers: readonly Buffer[]
  /** Which of them are left out. */
  readonly without?: readonly number[]
  /** Those that the configuration names instead. */
  readonly diffIds?: readonly string[]
  readonly isPacked?: boolean
  readonly labels?: Readonly<Record<string, string>>
}

async function archiveOf({
  name,
  layers,
  without = [],
  diffIds,
  isPacked,
  labels = {}
}: Archive): Promise<Buffer> {
  const config = Buffer.from(
    JSON.stringify({
      architecture: process.arch === 'arm64' ? 'arm64' : 'amd64',
      os: 'linux',
      config: { Cmd: ['/x'], Labels: labels },
      rootfs: { type: 'layers', diff_ids: diffIds ?? layers.map(sha256) },
      history: layers.map(() => ({ created_by: 'by hand' }))
    })
  )
  const tar = pack()
  tar.entry({ name: 'config.json' }, config)
  const Layers = layers.map((_, at) => `layer-${at}.tar`)
  tar.entry(
    { name: 'manifest.json' },
    JSON.stringify([{ Config: 'config.json', RepoTags: name === null ? null : [name], Layers }])
  )
  for (const [at, layer] of layers.entries())
    if (!without.includes(at))
      tar.entry({ name: `layer-${at}.tar` }, isPacked === true ? gzipSync(layer) : layer)
  tar.finalize()
  return await buffer(Readable.from(tar))
}

function nameFor(t: Test, { docker }: Lab): string {
  const name = `${loadedPrefix}lab-${randomUUID()}:latest`
  t.teardown(
    async () =>
      await docker
        .getImage(name)
        .remove({ force: true })
        .catch(() => undefined)
  )
  return name
}

const load = async (t: Test, lab: Lab, archive: Omit<Archive, 'name'>) => {
  const name = nameFor(t, lab)
  let layers = 0
  const image = await lab.runtime.load(Readable.from([await archiveOf({ ...archive, name })]), {
    name,
    onLayer: () => layers++,
    signal: forever
  })
  return { image, layers, name }
}

/** As this engine names it: by its configuration, the first file of an archive. */
const idOf = (archive: Buffer): string =>
  sha256(archive.subarray(512, 512 + Number.parseInt(archive.toString('latin1', 124, 135), 8)))

engineTest(
  'an image is taken in under its name, packed or not, and without the layers that are held',
  async t => {
    const lab = startLab(t)
    const below = await layerOf('below', randomBytes(64))
    const above = await layerOf('above', randomBytes(64))
    const first = await load(t, lab, { layers: [below], isPacked: true })
    t.match(first, { image: { repoTags: [first.name], layers: [sha256(below)] }, layers: 1 })
    const second = await load(t, lab, { layers: [below, above], without: [0] })
    t.match(second, { image: { repoTags: [second.name], layers: [below, above].map(sha256) }, layers: 1 })
    t.match(await load(t, lab, { layers: [below, above], without: [0, 1] }), {
      image: { id: second.image.id },
      layers: 0
    })
  }
)

engineTest(
  'what is missing, other than it is said to be, or no image is refused, and leaves no name',
  async t => {
    const lab = startLab(t)
    const layer = await layerOf('x', randomBytes(64))
    const other = await layerOf('x', randomBytes(64))
    await t.rejects(load(t, lab, { layers: [layer], without: [0] }), {
      status: 409,
      code: 'E_IMAGE_INCOMPLETE'
    })
    await t.rejects(load(t, lab, { layers: [layer], diffIds: [sha256(other)] }), {
      status: 422,
      code: 'E_IMAGE_ARCHIVE',
      message: /invalid diffID/
    })
    const name = nameFor(t, lab)
    await t.rejects(lab.runtime.load(Readable.from([Buffer.alloc(1024)]), { name, signal: forever }))
    const whole = await archiveOf({ name, layers: [layer] })
    const reason = new Error('the registry has gone')
    const broken = Readable.from(
      (async function* () {
        yield whole.subarray(0, whole.length - 512)
        throw reason
      })()
    )
    await t.rejects(lab.runtime.load(broken, { name, signal: forever }), reason)
    t.equal(await lab.runtime.image(name), undefined)
  }
)

engineTest('what has come of an image is told while it comes, and a cancel ends it', async t => {
  const lab = startLab(t)
  const owner = { projectId: lab.projectId, applicationId: randomUUID() }
  const name = nameFor(t, lab)
  const cancel = new AbortController()
  const reason = new Error('cancelled')
  const archive = await archiveOf({ name, layers: [await layerOf('large', randomBytes(2 ** 20))] })
  const slow = Readable.from(
    (async function* () {
      yield archive.subarray(0, archive.length / 2)
      await new Promise(() => {})
    })()
  )
  const loading = t.rejects(lab.runtime.load(slow, { name, owner, signal: cancel.signal }), reason)
  await until(async () => ((await lab.runtime.buildUsage())[0]?.bytes ?? 0) > 2 ** 18, 'some of it came')
  t.match(await lab.runtime.buildUsage(), [{ owner, isPartial: false }])
  cancel.abort(reason)
  await loading
  t.same(await lab.runtime.buildUsage(), [])
  t.equal(await lab.runtime.image(name), undefined)
})

engineTest('what the labels of a loaded image say makes it nobody’s, and keeps it from nobody', async t => {
  const lab = startLab(t)
  const owner = { projectId: lab.projectId, applicationId: randomUUID() }
  const unsigned = {
    'busbar-image-instance': lab.instanceId,
    'project-id': owner.projectId,
    'application-id': owner.applicationId
  }
  const layer = await layerOf('x', randomBytes(64))
  await load(t, lab, { layers: [layer], labels: unsigned })
  t.same(await lab.runtime.images(owner), [])

  // An application runs, by its registry, what another one has built: one image with two names.
  const labels = await lab.runtime.imageLabels(owner)
  const { image, name } = await load(t, lab, { layers: [layer], labels })
  t.same(await lab.runtime.images(owner), [], 'it goes with whoever loaded it')
  await lab.docker.getImage(image.id).tag({ repo: `busbar-app-${owner.applicationId}`, tag: '1' })
  t.match(await lab.runtime.images(owner), [{ tags: [`busbar-app-${owner.applicationId}:1`] }])

  const ofAnother = await load(t, lab, {
    layers: [layer],
    labels: { ...unsigned, 'busbar-image-instance': randomUUID() }
  })
  await lab.runtime.removeImage(ofAnother.name)
  t.equal(await lab.runtime.image(ofAnother.name), undefined)
  t.not(await lab.runtime.image(name), undefined)
})

engineTest('an engine that has all of an image goes on after a cancel, and says when it is done', async t => {
  const lab = startLab(t)
  const name = nameFor(t, lab)
  const reason = new Error('cancelled')
  const tar = pack()
  for (let at = 0; at < 20_000; at++) tar.entry({ name: `${randomUUID()}` }, 'x')
  tar.finalize()
  const archive = await archiveOf({ name, layers: [await buffer(Readable.from(tar))] })
  const cancel = new AbortController()
  let ended: Promise<void> | undefined
  const loading = lab.runtime.load(Readable.from([archive]), {
    name,
    signal: cancel.signal,
    onLayer: () => cancel.abort(reason),
    onAbandoned: done => {
      ended = done
    }
  })
  await t.rejects(loading, reason)
  t.equal(await lab.runtime.image(name), undefined, 'not yet')
  await ended
  t.ok(ended !== undefined && (await lab.runtime.image(name)) !== undefined)
})

/** What a build engine has made for an application. */
async function handOver(
  lab: Lab,
  owner: Owner,
  archive: Omit<Archive, 'name'>,
  more: Partial<LoadOptions> = {}
) {
  return await lab.runtime.load(Readable.from([await archiveOf({ ...archive, name: null })]), {
    name: tagOf(owner),
    builtFor: owner,
    signal: forever,
    ...more
  })
}

const ownerIn = ({ projectId }: Lab) => ({ projectId, applicationId: randomUUID() })
const tagOf = ({ applicationId = '' }: Owner): string => `lab-${applicationId}:1`
const allImages = async ({ docker }: Lab): Promise<string[]> =>
  (await docker.listImages({ all: true })).map(({ Id }) => Id)

engineTest('what a build engine has made for an application is its image, under its name', async t => {
  const lab = startLab(t)
  const owner = ownerIn(lab)
  const labels = await lab.runtime.imageLabels(owner)
  const below = await layerOf('below', randomBytes(64))
  const above = await layerOf('above', randomBytes(64))
  const image = await handOver(lab, owner, { layers: [below], labels: { ...labels, own: 'x' } })
  t.match(image, { repoTags: [tagOf(owner)], builtFor: owner, layers: [sha256(below)] })
  t.match(await lab.runtime.images(owner), [{ id: image.id, tags: [tagOf(owner)], owner }])

  const next = await handOver(lab, owner, { layers: [below, above], without: [0], labels })
  t.match(next, { repoTags: [tagOf(owner)], layers: [below, above].map(sha256) })
  await t.rejects(
    handOver(lab, owner, { layers: [await layerOf('x', randomBytes(64)), above], without: [0], labels }),
    { status: 409, code: 'E_IMAGE_INCOMPLETE' }
  )
  t.equal((await lab.runtime.image(tagOf(owner)))?.id, next.id)
  await lab.runtime.removeImage(tagOf(owner))
  // The first one has lost its name to the second.
  await lab.runtime.clearBuildCache(owner)
  t.same(await lab.runtime.images(owner), [])
})

engineTest('with labels that are not those of its owner nothing of it stays', async t => {
  const lab = startLab(t)
  const owner = ownerIn(lab)
  const labels = await lab.runtime.imageLabels(owner)
  const others = await lab.runtime.imageLabels(ownerIn(lab))
  const { 'busbar-signature': _, ...unsigned } = labels
  const layer = await layerOf('x', randomBytes(64))
  for (const [what, wrong] of Object.entries({
    none: {},
    'another application’s': others,
    unsigned,
    'a foreign signature': { ...labels, 'busbar-signature': others['busbar-signature'] ?? '' },
    'another installation’s': { ...labels, 'busbar-image-instance': randomUUID() },
    'one more': { ...labels, 'busbar-future': 'x' }
  })) {
    const archive = await archiveOf({ name: null, layers: [layer], labels: wrong })
    const before = await allImages(lab)
    await t.rejects(
      lab.runtime.load(Readable.from([archive]), { name: tagOf(owner), builtFor: owner, signal: forever }),
      { status: 422, code: 'E_BUILD_LABELS' },
      what
    )
    t.same(
      (await allImages(lab)).filter(id => !before.includes(id) && id === idOf(archive)),
      [],
      what
    )
  }
  t.equal(await lab.runtime.image(tagOf(owner)), undefined)

  // What was there under a name of its own stays: this is the same image.
  const image = await handOver(lab, owner, { layers: [layer], labels })
  await t.rejects(
    handOver(lab, ownerIn(lab), { layers: [layer], labels }, { name: `lab-${randomUUID()}:1` }),
    { code: 'E_BUILD_LABELS' }
  )
  t.match(await lab.runtime.image(tagOf(owner)), { id: image.id, repoTags: [tagOf(owner)] })
  await lab.runtime.removeImage(tagOf(owner))
})

engineTest('a hand-over counts for its owner, and one that is cancelled leaves nothing', async t => {
  const lab = startLab(t)
  const owner = ownerIn(lab)
  const labels = await lab.runtime.imageLabels(owner)
  const tar = pack()
  for (let at = 0; at < 20_000; at++) tar.entry({ name: `${randomUUID()}` }, 'x')
  tar.finalize()
  const layers = [await buffer(Readable.from(tar))]
  const cancel = new AbortController()
  const reason = new Error('cancelled')
  let ended: Promise<void> | undefined
  let usage: Promise<readonly BuildUsage[]> | undefined
  await t.rejects(
    handOver(
      lab,
      owner,
      { layers, labels },
      {
        signal: cancel.signal,
        onLayer: () => {
          usage = lab.runtime.buildUsage()
          cancel.abort(reason)
        },
        onAbandoned: done => {
          ended = done
        }
      }
    ),
    reason
  )
  t.match(await usage, [{ owner }])
  t.not(ended, undefined)
  await ended
  t.same(await lab.runtime.images(owner), [])
  t.equal(await lab.runtime.image(tagOf(owner)), undefined)
})

engineTest('what was handed over when the platform died is found as what builds leave', async t => {
  const lab = startLab(t)
  const owner = ownerIn(lab)
  const labels = await lab.runtime.imageLabels(owner)
  const archive = await archiveOf({ name: null, layers: [await layerOf('x', randomBytes(64))], labels })
  // Without its end: nobody gives it a name.
  await buffer((await lab.docker.loadImage(Readable.from([archive]))) as Readable)
  t.match(await lab.runtime.images(owner), [{ id: idOf(archive), tags: [], owner }])
  await lab.runtime.clearBuildCache(owner)
  t.same(await lab.runtime.images(owner), [])
})
