import { createHash, randomUUID } from 'node:crypto'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'

interface Stored {
  readonly type: string
  readonly bytes: Buffer
}

interface Registry {
  /** `127.0.0.1:<port>`, the beginning of the names of its images. */
  readonly host: string
  close(): Promise<void>
}

/** An image registry in memory, to push to and pull from; the engine takes plain HTTP on 127.0.0.0/8. */
export async function startRegistry(
  options: { readonly auth?: { readonly username: string; readonly password: string } } = {}
): Promise<Registry> {
  const blobs = new Map<string, Buffer>()
  const uploads = new Map<string, Buffer[]>()
  const manifests = new Map<string, Stored>()
  const { auth } = options
  const expected =
    auth === undefined
      ? undefined
      : `Basic ${Buffer.from(`${auth.username}:${auth.password}`).toString('base64')}`

  const answer = async (request: IncomingMessage, response: ServerResponse): Promise<void> => {
    const { pathname, searchParams } = new URL(request.url ?? '/', 'http://registry')
    const chunks: Buffer[] = []
    for await (const chunk of request) chunks.push(Buffer.from(chunk))
    const body = Buffer.concat(chunks)
    const send = (status: number, headers: Record<string, string | number> = {}, content?: Buffer) => {
      response.writeHead(status, {
        'docker-distribution-api-version': 'registry/2.0',
        'content-length': content?.length ?? 0,
        ...headers
      })
      response.end(request.method === 'HEAD' ? undefined : content)
    }
    if (expected !== undefined && request.headers.authorization !== expected)
      return send(401, { 'www-authenticate': 'Basic realm="lab"' })
    const [, name = '', kind = '', reference = ''] =
      /^\/v2\/(.+?)\/(blobs\/uploads|blobs|manifests)\/(.*)$/.exec(pathname) ?? []
    if (kind === 'blobs/uploads') {
      const id = reference === '' ? randomUUID() : reference
      const parts = uploads.get(id) ?? []
      uploads.set(id, [...parts, body])
      if (request.method !== 'PUT')
        return send(202, {
          location: `/v2/${name}/blobs/uploads/${id}`,
          range: `0-${Math.max(0, Buffer.concat([...parts, body]).length - 1)}`
        })
      const digest = searchParams.get('digest') ?? ''
      blobs.set(digest, Buffer.concat([...parts, body]))
      return send(201, { 'docker-content-digest': digest, location: `/v2/${name}/blobs/${digest}` })
    }
    if (kind === 'blobs') {
      const blob = blobs.get(reference)
      return blob === undefined
        ? send(404)
        : send(
            200,
            {
              'content-type': 'application/octet-stream',
              'docker-content-digest': reference,
              'content-length': blob.length
            },
            blob
          )
    }
    if (kind === 'manifests' && request.method === 'PUT') {
      const digest = digestOf(body)
      const stored = { type: request.headers['content-type'] ?? '', bytes: body }
      for (const key of [reference, digest]) manifests.set(`${name}@${key}`, stored)
      return send(201, { 'docker-content-digest': digest })
    }
    if (kind === 'manifests') {
      const found = manifests.get(`${name}@${reference}`)
      if (found !== undefined)
        return send(
          200,
          {
            'content-type': found.type,
            'docker-content-digest': digestOf(found.bytes),
            'content-length': found.bytes.length
          },
          found.bytes
        )
      return send(
        404,
        { 'content-type': 'application/json' },
        Buffer.from('{"errors":[{"code":"MANIFEST_UNKNOWN","message":"manifest unknown"}]}')
      )
    }
    return send(200)
  }

  const server = createServer((request, response) => {
    answer(request, response).catch(() => response.destroy())
  })
  await new Promise<void>(resolve => server.listen(0, '127.0.0.1', resolve))
  return {
    host: `127.0.0.1:${(server.address() as AddressInfo).port}`,
    async close() {
      server.closeAllConnections()
      await new Promise(resolve => server.close(resolve))
    }
  }
}

const digestOf = (bytes: Buffer): string => `sha256:${createHash('sha256').update(bytes).digest('hex')}`
