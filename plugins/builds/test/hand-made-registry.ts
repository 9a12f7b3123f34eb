import { createHash } from 'node:crypto'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import type { Test } from 'tap'

export interface Descriptor {
  readonly digest: string
  readonly size: number
  readonly mediaType?: string
  readonly platform?: { readonly os: string; readonly architecture: string; readonly variant?: string }
}

interface Account {
  readonly username: string
  readonly password: string
}

/** How it is not as plain as others. */
interface Ways {
  /** It has a token service, each of whose tokens is good for so many requests. */
  readonly tokenUses?: number
  /** 200 and the whole, whatever part is asked for. */
  readonly ignoresRanges?: true
  /** True when it has answered itself. */
  readonly answers?: (request: IncomingMessage, response: ServerResponse) => boolean
}

/** A registry that says whatever it is told to, on 127.0.0.1: what a manifest names it need not have. */
interface HandMadeRegistry {
  /** `127.0.0.1:<port>`, the beginning of the names of its images. */
  readonly host: string
  /** Each request for a blob, by digest. */
  readonly blobsAsked: readonly string[]
  /** The first byte that was asked for, of each of these. */
  readonly rangesAsked: readonly number[]
  /** What its token service was asked for, and by whom. */
  readonly tokensAsked: ReadonlyArray<{ readonly scope: string | null; readonly authorization?: string }>
  blob(bytes: Buffer): Descriptor
  /** Hands out these bytes for a digest that they do not have. */
  blobAs(digest: string, bytes: Buffer): void
  manifest(name: string, tag: string, config: Descriptor, layers: readonly Descriptor[]): Descriptor
  /** For several machines, or of indexes. */
  index(name: string, tag: string, manifests: readonly Descriptor[]): Descriptor
  /** Any text for a manifest, or any for the digest of another. */
  manifestAs(name: string, tag: string, text: string, type?: string): Descriptor
  /** The next answers with this blob break off after so many bytes each. */
  breakOff(digest: string, after: readonly number[]): void
}

export async function startHandMadeRegistry(
  t: Test,
  account?: Account,
  { answers, ignoresRanges, tokenUses }: Ways = {}
): Promise<HandMadeRegistry> {
  const blobs = new Map<string, Buffer>()
  const manifests = new Map<string, { readonly bytes: Buffer; readonly type: string }>()
  const blobsAsked: string[] = []
  const rangesAsked: number[] = []
  const tokensAsked: Array<HandMadeRegistry['tokensAsked'][number]> = []
  const breaks = new Map<string, number[]>()
  const usesLeft = new Map<string, number>()
  const expected =
    account === undefined
      ? undefined
      : `Basic ${Buffer.from(`${account.username}:${account.password}`).toString('base64')}`

  const giveToken = ({ url = '', headers }: IncomingMessage, response: ServerResponse): void => {
    const { authorization } = headers
    tokensAsked.push({ scope: new URL(url, 'http://registry').searchParams.get('scope'), authorization })
    if (expected !== undefined && authorization !== expected) return void response.writeHead(401).end()
    const token = `token-${tokensAsked.length}`
    usesLeft.set(`Bearer ${token}`, tokenUses ?? 0)
    response.end(JSON.stringify({ token }))
  }

  const isLetIn = ({ headers: { authorization = '', host = '' } }: IncomingMessage, name: string) => {
    if (tokenUses === undefined)
      return expected === undefined || authorization === expected ? undefined : 'Basic realm="lab"'
    const left = usesLeft.get(authorization) ?? 0
    usesLeft.set(authorization, left - 1)
    const scope = `repository:${name}:pull`
    return left > 0 ? undefined : `Bearer realm="http://${host}/token",service="lab",scope="${scope}"`
  }

  const giveBlob = (digest: string, bytes: Buffer, request: IncomingMessage, response: ServerResponse) => {
    const asked = Number(/^bytes=(\d+)-$/.exec(request.headers.range ?? '')?.[1] ?? 0)
    rangesAsked.push(asked)
    const from = ignoresRanges === true ? 0 : asked
    const part = bytes.subarray(from)
    response.writeHead(from > 0 ? 206 : 200, {
      'content-type': 'application/octet-stream',
      'content-length': part.length,
      ...(from > 0 && { 'content-range': `bytes ${from}-${bytes.length - 1}/${bytes.length}` })
    })
    const after = breaks.get(digest)?.shift()
    if (after === undefined) return void response.end(request.method === 'HEAD' ? undefined : part)
    response.write(part.subarray(0, after), () => response.destroy())
  }

  const server = createServer((request, response) => {
    if (answers?.(request, response) === true) return
    if (request.url?.startsWith('/token') === true) return giveToken(request, response)
    const [, name = '', kind = '', reference = ''] =
      /^\/v2\/(.+?)\/(blobs|manifests)\/(.*)$/.exec(request.url ?? '') ?? []
    const challenge = isLetIn(request, name)
    if (challenge !== undefined) return void response.writeHead(401, { 'www-authenticate': challenge }).end()
    if (kind === '') return void response.end('{}')
    if (kind === 'blobs') blobsAsked.push(reference)
    const blob = kind === 'blobs' ? blobs.get(reference) : undefined
    const manifest = kind === 'manifests' ? manifests.get(`${name}:${reference}`) : undefined
    if (blob !== undefined) return giveBlob(reference, blob, request, response)
    if (manifest === undefined)
      return void response
        .writeHead(404)
        .end('{"errors":[{"code":"MANIFEST_UNKNOWN","message":"manifest unknown"}]}')
    response.writeHead(200, {
      'content-type': manifest.type,
      'content-length': manifest.bytes.length,
      'docker-content-digest': digestOf(manifest.bytes)
    })
    response.end(request.method === 'HEAD' ? undefined : manifest.bytes)
  })
  await new Promise<void>(resolve => server.listen(0, '127.0.0.1', resolve))
  t.teardown(() => {
    server.closeAllConnections()
    server.close()
  })

  const manifestAs = (name: string, tag: string, text: string, type = manifestType): Descriptor => {
    const bytes = Buffer.from(text)
    const digest = digestOf(bytes)
    for (const key of [tag, digest]) manifests.set(`${name}:${key}`, { bytes, type })
    return { digest, size: bytes.length, mediaType: type }
  }
  return {
    host: `127.0.0.1:${(server.address() as AddressInfo).port}`,
    blobsAsked,
    rangesAsked,
    tokensAsked,
    blob: bytes => {
      const digest = digestOf(bytes)
      blobs.set(digest, bytes)
      return { digest, size: bytes.length }
    },
    blobAs: (digest, bytes) => {
      blobs.set(digest, bytes)
    },
    manifest: (name, tag, config, layers) => manifestAs(name, tag, manifestText(config, layers)),
    index: (name, tag, entries) =>
      manifestAs(
        name,
        tag,
        JSON.stringify({ schemaVersion: 2, mediaType: indexType, manifests: entries }),
        indexType
      ),
    manifestAs,
    breakOff: (digest, after) => {
      breaks.set(digest, [...after])
    }
  }
}

export const manifestText = (config: Descriptor, layers: readonly Descriptor[]): string =>
  JSON.stringify({
    schemaVersion: 2,
    mediaType: manifestType,
    config: { mediaType: 'application/vnd.docker.container.image.v1+json', ...config },
    layers: layers.map(layer => ({
      mediaType: 'application/vnd.docker.image.rootfs.diff.tar.gzip',
      ...layer
    }))
  })

export const manifestType = 'application/vnd.docker.distribution.manifest.v2+json'
export const indexType = 'application/vnd.docker.distribution.manifest.list.v2+json'

export const digestOf = (bytes: Buffer): string =>
  `sha256:${createHash('sha256').update(bytes).digest('hex')}`
