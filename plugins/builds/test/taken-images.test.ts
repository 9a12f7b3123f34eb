import { execFile } from 'node:child_process'
import { createHash } from 'node:crypto'
import { mkdtemp, rm, truncate, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { buffer } from 'node:stream/consumers'
import { pipeline } from 'node:stream/promises'
import { promisify } from 'node:util'
import { gzipSync } from 'node:zlib'
import type Docker from 'dockerode'
import { type Test, test } from 'tap'
import { extract } from 'tar-stream'
import { requireDockerRegistry, startDockerRegistry } from '../../../lab/docker-registry.js'
import { requireEngine } from '../../../lab/engine.js'
import { containersOf, type DeployLab, engine, openLab } from '../../deployments/test/deploy-lab.js'
import { makeImage, push } from './hand-made-image.js'
import { type Descriptor, startHandMadeRegistry } from './hand-made-registry.js'

const account = { username: 'deployer', password: 'a-password-0123' }
const anyLayer = { size: 1000 }

async function openPlatform(t: Test): Promise<DeployLab> {
  const lab = await openLab()
  t.teardown(async () => await lab.close())
  return lab
}

/** Deploys an image as an application of its own; the deployment once it has ended. */
async function deployImage(
  lab: DeployLab,
  name: string,
  image: string,
  auth?: typeof account
): Promise<{ readonly id: string; readonly deployment: any; again(): Promise<any> }> {
  const app = await lab.application(
    name,
    {},
    {
      type: 'image',
      build_type: 'image',
      source_repo: undefined,
      branch: undefined,
      source_image: image,
      ...(auth !== undefined && { registry_username: auth.username, registry_password: auth.password })
    }
  )
  return { id: app.id, deployment: await app.deployed(), again: app.deployed }
}

/** What an application runs. */
async function imageOf({ id }: { readonly id: string }): Promise<Docker.ImageInspectInfo> {
  const [container] = await containersOf(id)
  return await engine.getImage(container?.ImageID ?? '').inspect()
}

/** Names that the platform has given to images on the engine. */
const fetchedNames = async (): Promise<string[]> =>
  (await engine.listImages())
    .flatMap(({ RepoTags }) => (RepoTags ?? []).filter(tag => tag.startsWith('busbar-fetched-')))
    .sort()

/** Those of images with the topmost layer of this one: others use the engine as well. */
async function fetchedWith({ RootFS }: Docker.ImageInspectInfo): Promise<string[]> {
  const layer = RootFS.Layers?.at(-1)
  if (layer === undefined) throw new Error('the image has no layers')
  const found: string[] = []
  for (const name of await fetchedNames()) {
    const seen = await engine
      .getImage(name)
      .inspect()
      .catch(() => undefined)
    if (seen?.RootFS.Layers?.includes(layer)) found.push(name)
  }
  return found
}

/** A registry that names what it has not, or not as it is named, hands out nothing. */
const refused = { status: 'failed', error_message: /incomplete or damaged/ }

/** An image that was pulled with the account of its registry, by the application `owner`. */
async function privateImage(t: Test, lab: DeployLab) {
  const registry = await startDockerRegistry(t, { account })
  const name = `${registry.host}/team/private:1`
  await makeImage(
    t,
    name,
    `FROM busybox:lab\nRUN echo hidden-${Date.now()} > /private.txt\nCMD ["httpd", "-f", "-p", "8080"]\n`
  )
  await push(name, account)
  const owner = await deployImage(lab, 'owner', name, account)
  t.match(owner.deployment, { status: 'success' })
  return { name, owner, registry, seen: await imageOf(owner) }
}

/** Of an image on the engine, lowest first. */
async function unpackedLayers(name: string): Promise<Buffer[]> {
  const files = new Map<string, Buffer>()
  const unpack = extract()
  const reading = (async () => {
    for await (const entry of unpack) files.set(entry.header.name, await buffer(entry))
  })()
  await pipeline(await engine.getImage(name).get(), unpack)
  await reading
  const [{ Layers }] = JSON.parse(String(files.get('manifest.json'))) as [{ Layers: string[] }]
  return Layers.map(path => files.get(path) ?? Buffer.alloc(0))
}

const sha256 = (bytes: Buffer): string => `sha256:${createHash('sha256').update(bytes).digest('hex')}`

const isOnEngine = async (name: string): Promise<boolean> =>
  await engine
    .getImage(name)
    .inspect()
    .then(
      () => true,
      () => false
    )

test('a registry that names what the engine holds for another application hands out nothing of it', async t => {
  if (!(await requireEngine(t)) || !(await requireDockerRegistry(t))) return
  const lab = await openPlatform(t)
  const own = await startHandMadeRegistry(t)

  await t.test('not what was built for it', async t => {
    const victim = await lab.otherProject('victim', {
      Dockerfile: 'FROM busybox:lab\nRUN echo hidden > /secret\nCMD ["httpd", "-f", "-p", "8080"]\n'
    })
    const { image_tag: tag } = await victim.deployed()
    const built = await engine.getImage(tag).inspect()
    own.manifest('built', '1', { digest: built.Id, ...anyLayer }, [])
    const name = `${own.host}/built:1`
    const thief = await deployImage(lab, 'thief', name)
    t.match(thief.deployment, refused)
    t.match(await thief.again(), refused)
    t.same(await fetchedWith(built), [], 'no name is left for it')
    t.ok(await isOnEngine(tag), 'the image and its own name stay')
    own.manifest('none', '1', { digest: `sha256:${'0'.repeat(63)}1`, ...anyLayer }, [])
    const control = await deployImage(lab, 'control', `${own.host}/none:1`)
    t.match(control.deployment, { status: 'failed', image_tag: null })
  })

  await t.test('not what triggers and stages of its build have left without a name, which stays', async t => {
    const base = `triggers-${Date.now()}:1`
    await makeImage(t, base, 'FROM busybox:lab\nONBUILD COPY secret.txt /secret\n')
    const victim = await lab.otherProject('steps', {
      'secret.txt': 'hidden',
      Dockerfile: `FROM ${base} AS one\nRUN echo hidden > /other\nFROM ${base}\nCOPY --from=one /other /other\nCMD ["httpd", "-f", "-p", "8080"]\n`
    })
    const deployment = await victim.deployed()
    t.match(deployment, { status: 'success' })
    const made = await engine.listImages({ all: true })
    const { Id: baseId } = await engine.getImage(base).inspect()
    const parents = new Set(made.map(({ ParentId }) => ParentId))
    const trigger = made.find(({ ParentId }) => ParentId === baseId)?.Id ?? ''
    const stage =
      made.find(
        ({ Id, Labels, RepoTags }) =>
          Labels?.['application-id'] === deployment.application_id &&
          !parents.has(Id) &&
          !RepoTags?.some(name => !name.startsWith('<none>'))
      )?.Id ?? ''
    for (const [kind, digest] of Object.entries({ trigger, stage })) {
      own.manifest(kind, '1', { digest, ...anyLayer }, [])
      const name = `${own.host}/${kind}:1`
      const thief = await deployImage(lab, `thief-${kind}`, name)
      t.match(thief.deployment, refused, kind)
      const from = await lab.application(`from-${kind}`, {
        Dockerfile: `FROM ${name}\nRUN cat /secret /other\n`
      })
      const built = await from.deployed()
      t.match(built, refused, `FROM ${kind}`)
      t.notMatch(built.build_logs, /hidden/)
      t.ok(await isOnEngine(digest), `${kind} is there for the next build`)
    }
    const copied = `copied-${Date.now()}:1`
    await makeImage(t, copied, `FROM busybox:lab\nONBUILD COPY --from=${trigger} /secret /got\n`)
    const copy = await lab.application('copy', { Dockerfile: `FROM ${copied}\nRUN cat /got\n` })
    const built = await copy.deployed()
    t.match(built, { status: 'failed' })
    t.notMatch(built.build_logs, /hidden/)
  })

  await t.test('not what it was handed because of its account', async t => {
    const { name: privateName, seen, owner } = await privateImage(t, lab)
    own.manifest('private', '1', { digest: seen.Id, ...anyLayer }, [])
    const name = `${own.host}/private:1`
    const run = await deployImage(lab, 'run', name)
    t.match(run.deployment, refused)
    const from = await lab.application('from', { Dockerfile: `FROM ${name}\nRUN cat /private.txt\n` })
    const built = await from.deployed()
    t.match(built, refused)
    t.notMatch(built.build_logs, /hidden/)
    t.match(await run.again(), refused, 'it has not become its own')

    const locked = await startHandMadeRegistry(t, account)
    locked.manifest('private', '1', { digest: seen.Id, ...anyLayer }, [])
    const withAccount = await deployImage(lab, 'with-account', `${locked.host}/private:1`, account)
    t.match(withAccount.deployment, refused, 'an account of its own proves nothing')

    t.match(await owner.again(), { status: 'success' }, 'it stays with who had it')
    const colleague = await deployImage(lab, 'colleague', privateName, account)
    t.match(colleague.deployment, { status: 'success' }, 'its registry lets in whom it knows')
  })
})

test('an image that may unpack to any size is refused before the engine has all of it', async t => {
  if (!(await requireEngine(t))) return
  const lab = await openPlatform(t)
  const own = await startHandMadeRegistry(t)
  const folder = await mkdtemp(join(tmpdir(), 'busbar-sparse-'))
  t.teardown(async () => await rm(folder, { recursive: true, force: true }))
  await writeFile(join(folder, 'hole'), '')
  await truncate(join(folder, 'hole'), 2 ** 40)
  const { stdout: layer } = await promisify(execFile)('tar', ['-S', '-C', folder, '-c', 'hole'], {
    encoding: 'buffer'
  })
  const config = {
    os: 'linux',
    architecture: (await engine.version()).Arch,
    rootfs: { type: 'layers', diff_ids: [sha256(layer)] }
  }
  own.manifest('sparse', '1', own.blob(Buffer.from(JSON.stringify(config))), [own.blob(gzipSync(layer))])
  const { deployment } = await deployImage(lab, 'sparse', `${own.host}/sparse:1`)
  t.match(deployment, { status: 'failed', error_message: /has sparse files in a layer/ })
  const from = await lab.application('from-sparse', { Dockerfile: `FROM ${own.host}/sparse:1\n` })
  t.match(await from.deployed(), { status: 'failed', error_message: /has sparse files in a layer/ })
})

test('a pull with an account takes nothing from others that the engine held before', async t => {
  if (!(await requireEngine(t))) return
  const lab = await openPlatform(t)
  const base = `base-${Date.now()}:1`
  await makeImage(t, base, `FROM busybox:lab\nRUN echo ${base} > /base\nCMD ["httpd", "-f", "-p", "8080"]\n`)
  const user = await lab.otherProject('user', { Dockerfile: `FROM ${base}\nRUN cat /base\n` })
  t.match(await user.deployed(), { status: 'success' })
  const { Id: digest } = await engine.getImage(base).inspect()
  const locked = await startHandMadeRegistry(t, account)
  locked.manifest('claim', '1', { digest, ...anyLayer }, [])
  const claim = `${locked.host}/claim:1`
  t.match((await deployImage(lab, 'claim', claim, account)).deployment, refused)

  // The same layers, packed so that the registry's digests of them are new.
  const layers = (await unpackedLayers(base)).map(layer => locked.blob(gzipSync(layer, { level: 1 })))
  const { RootFS } = await engine.getImage(base).inspect()
  locked.manifest(
    'repacked',
    '1',
    locked.blob(
      Buffer.from(
        JSON.stringify({
          architecture: 'amd64',
          os: 'linux',
          config: { Cmd: ['httpd', '-f', '-p', '8080'] },
          rootfs: { type: 'layers', diff_ids: RootFS.Layers },
          history: RootFS.Layers?.map((_, at) => ({ created_by: `by hand ${at}` }))
        })
      )
    ),
    layers
  )
  const repacked = `${locked.host}/repacked:1`
  const claimed = await deployImage(lab, 'repacked', repacked, account)
  t.match(claimed.deployment, { status: 'success', error_message: null })
  t.match((await deployImage(lab, 'claim-again', claim, account)).deployment, refused)
  await user.push({ Dockerfile: `FROM ${base}\nRUN cat /base; true\n` })
  t.match(await user.deployed(), { status: 'success', error_message: null })
})

test('what everybody may have stays so although one has pulled it first, with an account', async t => {
  if (!(await requireEngine(t)) || !(await requireDockerRegistry(t))) return
  const lab = await openPlatform(t)
  const open = await startDockerRegistry(t)
  const name = `${open.host}/team/public:1`
  await makeImage(
    t,
    name,
    `FROM busybox:lab\nRUN echo ${Date.now()} > /p\nCMD ["httpd", "-f", "-p", "8080"]\n`
  )
  await push(name)
  const read = async (what: string): Promise<Buffer> => {
    const accept = 'application/vnd.docker.distribution.manifest.v2+json'
    return Buffer.from(
      await (await fetch(`http://${open.host}/v2/team/public/${what}`, { headers: { accept } })).arrayBuffer()
    )
  }
  const manifest = JSON.parse((await read('manifests/1')).toString()) as {
    config: Descriptor
    layers: Descriptor[]
  }
  const locked = await startHandMadeRegistry(t, account)
  for (const { digest } of [manifest.config, ...manifest.layers]) locked.blob(await read(`blobs/${digest}`))
  locked.manifest('copy', '1', manifest.config, manifest.layers)
  const first = await deployImage(lab, 'first', `${locked.host}/copy:1`, account)
  t.match(first.deployment, { status: 'success', error_message: null })
  const run = await deployImage(lab, 'run', name)
  t.match(run.deployment, { status: 'success', error_message: null })
  const from = await lab.application('from', { Dockerfile: `FROM ${name}\nRUN cat /p\n` })
  t.match(await from.deployed(), { status: 'success', error_message: null })
})

test('a registry that names layers which others needed an account for must have them itself', async t => {
  if (!(await requireEngine(t)) || !(await requireDockerRegistry(t))) return
  const lab = await openPlatform(t)
  const { registry, seen } = await privateImage(t, lab)
  const read = async (what: string): Promise<Buffer> => {
    const answer = await fetch(`http://${registry.host}/v2/team/private/${what}`, {
      headers: {
        accept: 'application/vnd.docker.distribution.manifest.v2+json',
        authorization: `Basic ${Buffer.from(`${account.username}:${account.password}`).toString('base64')}`
      }
    })
    return Buffer.from(await answer.arrayBuffer())
  }
  const { layers } = JSON.parse((await read('manifests/1')).toString()) as { layers: Descriptor[] }
  const config = Buffer.from(
    JSON.stringify({
      architecture: seen.Architecture,
      os: seen.Os,
      config: { Cmd: ['httpd', '-f', '-p', '8080'] },
      rootfs: { type: 'layers', diff_ids: seen.RootFS.Layers },
      history: seen.RootFS.Layers?.map((_, at) => ({ created_by: `by hand ${at}` }))
    })
  )

  const empty = await startHandMadeRegistry(t)
  empty.manifest('layers', '1', empty.blob(config), layers)
  const name = `${empty.host}/layers:1`
  const from = await lab.application('from', { Dockerfile: `FROM ${name}\nRUN cat /private.txt\n` })
  const built = await from.deployed()
  t.match(built, refused)
  t.notMatch(built.build_logs, /hidden/)
  t.match((await deployImage(lab, 'run', name)).deployment, refused)

  const other = await startHandMadeRegistry(t)
  for (const { digest } of layers) other.blobAs(digest, Buffer.from('something else'))
  other.manifest('layers', '1', other.blob(config), layers)
  t.match((await deployImage(lab, 'other', `${other.host}/layers:1`)).deployment, refused)

  // The engine takes a key for the same whichever case it is in, and the last of those that are.
  const own = await startHandMadeRegistry(t)
  const ownLayers = (seen.RootFS.Layers ?? []).map((_, at) => Buffer.alloc(1024 * (at + 1)))
  const twoFaced = {
    ...(JSON.parse(config.toString()) as object),
    rootfs: { type: 'layers', diff_ids: ownLayers.map(sha256) },
    RootFS: { type: 'layers', diff_ids: seen.RootFS.Layers }
  }
  own.manifest(
    'layers',
    '1',
    own.blob(Buffer.from(JSON.stringify(twoFaced))),
    ownLayers.map(layer => own.blob(layer))
  )
  const names = await fetchedNames()
  t.match((await deployImage(lab, 'two-faced', `${own.host}/layers:1`)).deployment, {
    status: 'failed',
    error_message: /its command was not found/
  })
  const layersOf = async (image: string): Promise<readonly string[]> =>
    (await engine.getImage(image).inspect()).RootFS.Layers ?? []
  const fresh = (await fetchedNames()).filter(image => !names.includes(image))
  const found = await Promise.all(fresh.map(layersOf))
  t.ok(
    found.some(some => some.join() === ownLayers.map(sha256).join()),
    'it has the layers that were read'
  )

  const full = await startHandMadeRegistry(t)
  for (const { digest } of layers) full.blob(await read(`blobs/${digest}`))
  full.manifest('layers', '1', full.blob(config), layers)
  const honest = await deployImage(lab, 'honest', `${full.host}/layers:1`)
  t.match(honest.deployment, { status: 'success', error_message: null }, 'one that has them hands them out')
  const asked = (): number =>
    full.blobsAsked.filter(blob => layers.some(({ digest }) => digest === blob)).length
  const first = asked()
  t.match(await honest.again(), { status: 'success' })
  t.equal(asked(), first, 'and is believed from then on')
})
