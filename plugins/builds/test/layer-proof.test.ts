import { createHash } from 'node:crypto'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { gzipSync } from 'node:zlib'
import type { ImageInfo } from 'busbar/api/runtime-docker'
import { type Test, test } from 'tap'
import { layerProof } from '../registry/layer-proof.js'
import { policyOf } from './policy-of.js'

const sha256 = (bytes: Buffer): string => `sha256:${createHash('sha256').update(bytes).digest('hex')}`
const auth = { username: 'ann', password: 'hunter22' }
const basic = `Basic ${Buffer.from('ann:hunter22').toString('base64')}`
const forever = new AbortController().signal
const layer = Buffer.from('a layer '.repeat(10_000))
const config = Buffer.from('{"os":"linux"}')
const image = (host: string): ImageInfo =>
  ({
    id: sha256(config),
    repoDigests: [`${host}/team/app@sha256:${'1'.repeat(64)}`],
    layers: [sha256(layer)]
  }) as unknown as ImageInfo

async function serve(t: Test, answer: (request: IncomingMessage, response: ServerResponse) => void) {
  const server = createServer(answer)
  await new Promise<void>(resolve => server.listen(0, '127.0.0.1', resolve))
  t.teardown(() => {
    server.closeAllConnections()
    server.close()
  })
  return `127.0.0.1:${(server.address() as AddressInfo).port}`
}

/** A registry with a token service, an image for two platforms, and its layers on another host. */
async function registry(t: Test, blob: Buffer) {
  const told: Array<string | undefined> = []
  const store = await serve(t, (request, response) => {
    told.push(request.headers.authorization)
    response.end(blob)
  })
  const descriptor = (digest: string) => ({ digest, size: 1, mediaType: 'x' })
  const manifests: Readonly<Record<string, object>> = {
    ['1'.repeat(64)]: {
      manifests: [descriptor(`sha256:${'2'.repeat(64)}`), descriptor(`sha256:${'3'.repeat(64)}`)]
    },
    ['2'.repeat(64)]: { config: descriptor(`sha256:${'9'.repeat(64)}`), layers: [] },
    ['3'.repeat(64)]: { config: descriptor(sha256(config)), layers: [descriptor(sha256(blob))] }
  }
  const host: string = await serve(t, (request, response) => {
    const url = new URL(request.url ?? '', 'http://registry')
    if (url.pathname === '/token') {
      const isAsked =
        request.headers.authorization === basic &&
        url.searchParams.get('scope') === 'repository:team/app:pull'
      response.writeHead(isAsked ? 200 : 403).end('{"token":"opensesame"}')
    } else if (request.headers.authorization !== 'Bearer opensesame') {
      const challenge = `Bearer realm="http://${host}/token",service="lab",scope="repository:team/app:pull"`
      response.writeHead(401, { 'www-authenticate': challenge }).end()
    } else if (url.pathname === `/v2/team/app/blobs/${sha256(config)}`) response.end(config)
    else if (url.pathname === `/v2/team/app/blobs/${sha256(blob)}`)
      response.writeHead(307, { location: `http://${store}/layer` }).end()
    else {
      const manifest = manifests[/^\/v2\/team\/app\/manifests\/sha256:(\w+)$/.exec(url.pathname)?.[1] ?? '']
      response.writeHead(manifest === undefined ? 404 : 200).end(JSON.stringify(manifest ?? {}))
    }
  })
  return { host, told }
}

const ask = async (host: string, setting: string, account?: typeof auth): Promise<string | undefined> =>
  await layerProof({ hostPolicy: () => policyOf(setting), lookup: async () => [] })(
    {
      name: `${host}/team/app:1`,
      image: image(host),
      hasConfig: true,
      layers: [sha256(layer)],
      ...(account !== undefined && { auth: account })
    },
    forever
  )

test('a registry shows its layers to its token alone, packed or not, wherever it keeps them', async t => {
  for (const blob of [layer, gzipSync(layer)]) {
    const { host, told } = await registry(t, blob)
    t.equal(await ask(host, '127.0.0.0/8', auth), undefined)
    t.same(told, [undefined], 'whoever keeps the layers is told no token')
    t.match(await ask(host, '127.0.0.0/8'), /token service answers 403/)
    await t.rejects(ask(host, 'deny', auth), { code: 'E_SOURCE_HOST_PRIVATE' })
  }
})

test('other layers, damaged ones and none at all show nothing', async t => {
  const other = await registry(t, gzipSync(Buffer.from('something else')))
  t.match(await ask(other.host, 'allow', auth), /something else/)
  const cut = await registry(t, gzipSync(layer).subarray(0, 50))
  t.match(await ask(cut.host, 'allow', auth), /unexpected end/)
  const nothing = await serve(t, (_request, response) => response.writeHead(404).end())
  t.match(await ask(nothing, 'allow', auth), /answers 404/)
  const page = await serve(t, (_request, response) => response.end('<html>'))
  t.match(await ask(page, 'allow', auth), /answers with something else/)
  const endless = await serve(t, (_request, response) => {
    const more = (): void => {
      while (!response.destroyed && response.write(' '.repeat(65_536)));
    }
    response.on('drain', more)
    more()
  })
  t.match(await ask(endless, 'allow', auth), /with too much/)
})
