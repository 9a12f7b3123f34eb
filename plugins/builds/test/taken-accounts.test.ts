import { buffer } from 'node:stream/consumers'
import { pipeline } from 'node:stream/promises'
import { gzipSync } from 'node:zlib'
import { test } from 'tap'
import { extract } from 'tar-stream'
import { requireDockerRegistry, startDockerRegistry } from '../../../lab/docker-registry.js'
import { requireEngine } from '../../../lab/engine.js'
import { engine } from '../../deployments/test/deploy-lab.js'
import { makeImage, push } from './hand-made-image.js'
import { type Descriptor, startHandMadeRegistry } from './hand-made-registry.js'
import { account, anyLayer, deployImage, openPlatform, refused } from './taken-lab.js'

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
