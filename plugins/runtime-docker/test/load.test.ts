import { createHash, randomBytes, randomUUID } from 'node:crypto'
import { Readable } from 'node:stream'
import { buffer } from 'node:stream/consumers'
import { gzipSync } from 'node:zlib'
import { loadedPrefix } from 'busbar/api/images'
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
  readonly name: string
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
  tar.entry({ name: 'manifest.json' }, JSON.stringify([{ Config: 'config.json', RepoTags: [name], Layers }]))
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
