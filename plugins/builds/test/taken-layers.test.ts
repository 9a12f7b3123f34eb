import { execFile } from 'node:child_process'
import { mkdtemp, rm, truncate, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { gzipSync } from 'node:zlib'
import { test } from 'tap'
import { requireDockerRegistry } from '../../../lab/docker-registry.js'
import { requireEngine } from '../../../lab/engine.js'
import { engine } from '../../deployments/test/deploy-lab.js'
import { type Descriptor, startHandMadeRegistry } from './hand-made-registry.js'
import {
  account,
  deployImage,
  fetchedNames,
  openPlatform,
  privateImage,
  refused,
  sha256
} from './taken-lab.js'

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
