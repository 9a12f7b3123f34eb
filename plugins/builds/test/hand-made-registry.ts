import { createHash } from 'node:crypto'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import type { Test } from 'tap'

export interface Descriptor {
  readonly digest: string
  readonly size: number
  readonly mediaType?: string
}

/** A registry that says whatever it is told to, on 127.0.0.1: what a manifest names it need not have. */
interface HandMadeRegistry {
  /** `127.0.0.1:<port>`, the beginning of the names of its images. */
  readonly host: string
  /** Each request for a blob, by digest. */
  readonly blobsAsked: readonly string[]
  blob(bytes: Buffer): Descriptor
  /** Hands out these bytes for a digest that they do not have. */
  blobAs(digest: string, bytes: Buffer): void
  manifest(name: string, tag: string, config: Descriptor, layers: readonly Descriptor[]): void
}

export async function startHandMadeRegistry(
  t: Test,
  account?: { readonly username: string; readonly password: string }
): Promise<HandMadeRegistry> {
  const blobs = new Map<string, Buffer>()
  const manifests = new Map<string, Buffer>()
  const blobsAsked: string[] = []
  const expected =
    account === undefined
      ? undefined
      : `Basic ${Buffer.from(`${account.username}:${account.password}`).toString('base64')}`
  const server = createServer((request, response) => {
    if (expected !== undefined && request.headers.authorization !== expected) {
      response.writeHead(401, { 'www-authenticate': 'Basic realm="lab"' }).end()
      return
    }
    const [, name = '', kind = '', reference = ''] =
      /^\/v2\/(.+?)\/(blobs|manifests)\/(.*)$/.exec(request.url ?? '') ?? []
    if (kind === 'blobs') blobsAsked.push(reference)
    const body =
      kind === ''
        ? Buffer.from('{}')
        : kind === 'blobs'
          ? blobs.get(reference)
          : manifests.get(`${name}:${reference}`)
    if (body === undefined) {
      response.writeHead(404).end('{"errors":[{"code":"MANIFEST_UNKNOWN","message":"manifest unknown"}]}')
      return
    }
    response.writeHead(200, {
      'content-type': kind === 'manifests' ? manifestType : 'application/octet-stream',
      'content-length': body.length,
      ...(kind === 'manifests' && { 'docker-content-digest': digestOf(body) })
    })
    response.end(request.method === 'HEAD' ? undefined : body)
  })
  await new Promise<void>(resolve => server.listen(0, '127.0.0.1', resolve))
  t.teardown(() => {
    server.closeAllConnections()
    server.close()
  })
  return {
    host: `127.0.0.1:${(server.address() as AddressInfo).port}`,
    blobsAsked,
    blob: bytes => {
      const digest = digestOf(bytes)
      blobs.set(digest, bytes)
      return { digest, size: bytes.length }
    },
    blobAs: (digest, bytes) => {
      blobs.set(digest, bytes)
    },
    manifest: (name, tag, config, layers) => {
      const manifest = Buffer.from(
        JSON.stringify({
          schemaVersion: 2,
          mediaType: manifestType,
          config: { mediaType: 'application/vnd.docker.container.image.v1+json', ...config },
          layers: layers.map(layer => ({
            mediaType: 'application/vnd.docker.image.rootfs.diff.tar.gzip',
            ...layer
          }))
        })
      )
      for (const key of [tag, digestOf(manifest)]) manifests.set(`${name}:${key}`, manifest)
    }
  }
}

const manifestType = 'application/vnd.docker.distribution.manifest.v2+json'

const digestOf = (bytes: Buffer): string => `sha256:${createHash('sha256').update(bytes).digest('hex')}`
