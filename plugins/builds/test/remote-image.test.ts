import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { buffer } from 'node:stream/consumers'
import { gzipSync } from 'node:zlib'
import { type Test, test } from 'tap'
import { pack } from 'tar-stream'
import { requireDockerRegistry, startDockerRegistry } from '../../../lab/docker-registry.js'
import { describeImage, openLayer, UnpackBudget } from '../registry/client/index.js'
import { digestOf, manifestText, startHandMadeRegistry } from './hand-made-registry.js'
import { failureOf, readerOf } from './registry-client-lab.js'

const account = { username: 'ann', password: 'hunter22:x' }
const budget = () => new UnpackBudget(2 ** 30)
const plain = Buffer.from('a layer '.repeat(10_000))

type Registry = Awaited<ReturnType<typeof startHandMadeRegistry>>

function configOf(architecture: string, layers: readonly Buffer[], os = 'linux'): Buffer {
  return Buffer.from(
    JSON.stringify({ os, architecture, rootfs: { type: 'layers', diff_ids: layers.map(digestOf) } })
  )
}

/** An image of one packed layer and one that is not. */
function push(registry: Registry, tag: string, architecture = 'amd64') {
  const layers = [plain, Buffer.from(`for ${architecture}`)]
  const config = configOf(architecture, layers)
  const manifest = registry.manifest('team/app', tag, registry.blob(config), [
    registry.blob(gzipSync(plain)),
    registry.blob(layers[1]!)
  ])
  return { config, layers, manifest }
}

test('an image is described by what its registry hands out, and its layers come as they are packed', async t => {
  const registry = await startHandMadeRegistry(t)
  const { layers, manifest } = push(registry, '1')
  const name = `${registry.host}/team/app:1`
  const reader = readerOf(t, name)
  const image = await describeImage(reader, name, 'linux/amd64')
  t.same(image, {
    digest: manifest.digest,
    manifestDigest: manifest.digest,
    config: Buffer.from(
      JSON.stringify({
        architecture: 'amd64',
        os: 'linux',
        config: {},
        rootfs: { type: 'layers', diff_ids: layers.map(digestOf) }
      })
    ),
    platform: 'linux/amd64',
    layers: [
      { digest: digestOf(gzipSync(plain)), size: gzipSync(plain).length, diffId: digestOf(plain) },
      { digest: digestOf(layers[1]!), size: layers[1]!.length, diffId: digestOf(layers[1]!) }
    ]
  })
  const all = budget()
  t.same(await buffer(openLayer(reader, image.layers[0]!, all)), gzipSync(plain))
  t.same(await buffer(openLayer(reader, image.layers[1]!, all)), layers[1])
  const byDigest = await describeImage(reader, `${registry.host}/team/app@${manifest.digest}`, 'linux/arm64')
  t.equal(byDigest.digest, manifest.digest)
  t.equal(byDigest.platform, 'linux/amd64', 'what it is for is told, not refused')
  await t.rejects(describeImage(reader, `${registry.host}/team/other:1`, 'linux/amd64'), /reader of/)
})

test('of an index, and of one in it, the manifest for the machine is read', async t => {
  const registry = await startHandMadeRegistry(t)
  const entry = (architecture: string) => ({
    ...push(registry, architecture, architecture).manifest,
    platform: { os: 'linux', architecture }
  })
  const attestation = {
    ...registry.manifestAs('team/app', 'a', manifestText(registry.blob(Buffer.from('{}')), [])),
    platform: { os: 'unknown', architecture: 'unknown' }
  }
  const inner = registry.index('team/app', 'inner', [attestation, entry('arm64'), entry('amd64')])
  const outer = registry.index('team/app', 'outer', [inner])
  registry.index('team/app', 'deep', [outer])
  const name = (tag: string) => `${registry.host}/team/app:${tag}`
  const describe = async (tag: string, platform: string) =>
    await describeImage(readerOf(t, name(tag)), name(tag), platform)
  const image = await describe('inner', 'linux/arm64/v8')
  t.equal(image.digest, inner.digest)
  t.equal(image.manifestDigest, entry('arm64').digest)
  t.equal(image.platform, 'linux/arm64')
  t.match(await describe('outer', 'linux/amd64'), { digest: outer.digest, platform: 'linux/amd64' })
  t.match(await failureOf(describe('deep', 'linux/amd64')), {
    code: 'E_IMAGE_FORMAT',
    message: /deeper than 2/
  })
  t.match(await failureOf(describe('inner', 'linux/s390x')), {
    code: 'E_IMAGE_PLATFORM',
    message:
      /no matching manifest for linux\/s390x \(there are: linux\/arm64, linux\/amd64\).*push it for that one too/
  })
})

test('nothing is taken for what it has not the digest of', async t => {
  const registry = await startHandMadeRegistry(t)
  const { config, manifest } = push(registry, 'good')
  const other = push(registry, 'other', 'arm64')
  const describe = async (version: string) => {
    const name = `${registry.host}/team/app${version}`
    return await describeImage(readerOf(t, name), name, 'linux/amd64')
  }
  // What comes for a digest is another manifest, which the header calls by the digest that was asked for.
  const wanted = digestOf(Buffer.from('wanted'))
  registry.manifestAs('team/app', wanted, manifestText(registry.blob(other.config), []))
  const broken = { code: 'E_IMAGE_BROKEN', message: /verification failed.*push the image again/ }
  t.match(await failureOf(describe(`@${wanted}`)), broken)
  registry.index('team/app', 'index', [
    { digest: wanted, size: 10, platform: { os: 'linux', architecture: 'amd64' } }
  ])
  t.match(await failureOf(describe(':index')), broken)
  t.ok(await describe(`@${manifest.digest}`))
  registry.blobAs(digestOf(config), other.config)
  t.match(await failureOf(describe(':good')), broken)
  registry.manifest('team/app', 'gone', { digest: wanted, size: 10 }, [])
  t.match(await failureOf(describe(':gone')), { code: 'E_IMAGE_BROKEN', message: /404/ })
  registry.manifest('team/app', 'large', { digest: wanted, size: 2 ** 23 }, [])
  t.match(await failureOf(describe(':large')), { code: 'E_IMAGE_FORMAT' })
  const windows = configOf('amd64', [], 'windows')
  registry.manifest('team/app', 'windows', registry.blob(windows), [])
  t.match(await failureOf(describe(':windows')), { code: 'E_IMAGE_PLATFORM', message: /windows\/amd64/ })
})

test('a token is asked for once, and once more when it has expired', async t => {
  const registry = await startHandMadeRegistry(t, account, { tokenUses: 3 })
  push(registry, '1')
  const name = `${registry.host}/team/app:1`
  const reader = readerOf(t, name, { auth: account })
  const image = await describeImage(reader, name, 'linux/amd64')
  t.equal(registry.tokensAsked.length, 1)
  t.match(registry.tokensAsked[0], {
    scope: 'repository:team/app:pull',
    authorization: `Basic ${Buffer.from('ann:hunter22:x').toString('base64')}`
  })
  const all = budget()
  for (const layer of image.layers) await buffer(openLayer(reader, layer, all))
  t.equal(registry.tokensAsked.length, 2)
  const never = await startHandMadeRegistry(t, account, { tokenUses: 0 })
  push(never, '1')
  const refused = `${never.host}/team/app:1`
  t.match(await failureOf(describeImage(readerOf(t, refused, { auth: account }), refused, 'linux/amd64')), {
    code: 'E_REGISTRY_DENIED',
    message: /to the account ann: allow it to pull/
  })
  t.equal(never.tokensAsked.length, 1, 'one that is never good is not asked for again')
})

test('an account goes to its registry and its token service alone, and over no network in the clear', async t => {
  const told: Array<string | undefined> = []
  const store = createServer((request, response) => {
    told.push(request.headers.authorization)
    response.end(gzipSync(plain))
  })
  await new Promise<void>(resolve => store.listen(0, '127.0.0.1', resolve))
  t.teardown(() => store.close())
  const { port } = store.address() as AddressInfo
  const packed = digestOf(gzipSync(plain))
  const registry = await startHandMadeRegistry(t, account, {
    tokenUses: 100,
    answers: (request, response) => {
      const isLayer = request.url?.endsWith(packed) === true && request.headers.authorization !== undefined
      if (isLayer) response.writeHead(307, { location: `http://localhost:${port}/layer` }).end()
      return isLayer
    }
  })
  push(registry, '1')
  const name = `${registry.host}/team/app:1`
  const reader = readerOf(t, name, { auth: account })
  const image = await describeImage(reader, name, 'linux/amd64')
  t.same(await buffer(openLayer(reader, image.layers[0]!, budget())), gzipSync(plain))
  t.same(told, [undefined])

  const listed = `listed.example:${registry.host.split(':')[1]}/team/app:1`
  const hosts = '127.0.0.1 listed.example'
  t.match(
    await failureOf(describeImage(readerOf(t, listed, { auth: account, hosts }), listed, 'linux/amd64')),
    { code: 'E_REGISTRY_PLAIN_HTTP', message: /does not speak TLS/ }
  )
  const foreign = await startHandMadeRegistry(t, account, {
    answers: (_request, response) => {
      response.writeHead(401, { 'www-authenticate': 'Bearer realm="http://world.example/token"' }).end()
      return true
    }
  })
  const leads = `${foreign.host}/team/app:1`
  t.match(await failureOf(describeImage(readerOf(t, leads, { auth: account }), leads, 'linux/amd64')), {
    code: 'E_REGISTRY_ANSWER',
    message: /token service is not encrypted/
  })
})

test('plain HTTP is for this machine, and for what the operator has named or has on a network of its own', async t => {
  const registry = await startHandMadeRegistry(t)
  push(registry, '1')
  const port = registry.host.split(':')[1]
  const describe = async (test: Test, host: string, hosts: string) => {
    const name = `${host}:${port}/team/app:1`
    const addresses = { 'public.example': ['127.0.0.1', '1.1.1.1'] }
    return await describeImage(readerOf(test, name, { hosts, addresses }), name, 'linux/amd64')
  }
  t.ok(await describe(t, '127.0.0.1', '127.0.0.1'))
  t.ok(await describe(t, 'listed.example', '127.0.0.1 listed.example'))
  t.ok(await describe(t, 'any.example', 'allow'), 'it has a private address')
  t.match(await failureOf(describe(t, 'public.example', 'allow')), { code: 'E_REGISTRY_PLAIN_HTTP' })
  t.ok(await describe(t, 'public.example', '127.0.0.1 public.example'))
  t.match(await failureOf(describe(t, 'world.example', '127.0.0.1')), {
    code: 'E_REGISTRY_PLAIN_HTTP',
    message: /world\.example:\d+ does not speak TLS.*GIT_PRIVATE_HOSTS/
  })
})

test('the real registry tells who may read what', async t => {
  if (!(await requireDockerRegistry(t))) return
  const registry = await startDockerRegistry(t, { account })
  const tar = pack()
  tar.entry({ name: 'hello' }, 'hello')
  tar.finalize()
  const layer = await buffer(tar)
  const digest = await registry.push('team/app', '1', { architecture: 'amd64', layer, command: ['/hello'] })
  const ask = async (name: string, auth?: typeof account) => {
    const whole = `${registry.host}/${name}`
    const reader = readerOf(t, whole, auth === undefined ? {} : { auth })
    const image = await describeImage(reader, whole, 'linux/amd64')
    return { ...image, bytes: await buffer(openLayer(reader, image.layers[0]!, budget())) }
  }
  const wrong = { ...account, password: 'wrong' }
  const gone = `sha256:${'0'.repeat(64)}`
  t.match(await failureOf(ask('team/app:1')), { code: 'E_REGISTRY_DENIED', message: /set registry_username/ })
  t.match(await failureOf(ask('team/app:1', wrong)), { code: 'E_REGISTRY_CREDENTIALS', message: /name ann / })
  t.match(await failureOf(ask('team/app:none', account)), {
    status: 404,
    code: 'E_IMAGE_NOT_FOUND',
    message: /it has no tag none of .*team\/app, or no such repository/
  })
  t.match(await failureOf(ask('team/none:1', account)), { code: 'E_IMAGE_NOT_FOUND' })
  t.match(await failureOf(ask(`team/app@${gone}`, account)), { message: new RegExp(`no version ${gone}`) })
  for (const name of ['team/app:1', `team/app@${digest}`]) {
    const image = await ask(name, account)
    t.equal(image.digest, digest)
    t.equal(digestOf(image.bytes), image.layers[0]!.digest)
    t.equal(image.layers[0]!.diffId, digestOf(layer))
  }
})

test('what is not wanted any more ends with the reason for that', async t => {
  const registry = await startHandMadeRegistry(t, undefined, { answers: () => true })
  const name = `${registry.host}/team/app:1`
  const cancel = new AbortController()
  const pending = failureOf(describeImage(readerOf(t, name, { signal: cancel.signal }), name, 'linux/amd64'))
  const reason = new Error('cancelled')
  cancel.abort(reason)
  t.equal(await pending, reason)
})
