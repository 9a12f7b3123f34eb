import { createHash, randomUUID } from 'node:crypto'
import { once } from 'node:events'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import type { Test } from 'tap'

/**
 * What becomes of a request instead of its answer. `half`: the answer is cut off in the middle of its body. `lost`: it is done, and
 * nobody hears of it.
 */
type S3Fault = 'cut' | 'half' | 'lost' | 'silence' | 'refuse' | 'full' | undefined

interface S3Request {
  readonly method: string
  /** Of the object; '' of the bucket. */
  readonly key: string
  readonly part: number | null
  /** How many requests came before it. */
  readonly number: number
}

export interface S3Server {
  /** With its port. */
  readonly host: string
  readonly objects: ReadonlyMap<string, Buffer>
  /** Keys of uploads that are neither finished nor given up. */
  uploads(): string[]
  /** Puts another content under a key, as damage does. */
  replace(key: string, content: Buffer): void
  lose(key: string): void
  /** Asked for each request, which waits for it; without one every request is answered. */
  fault: ((request: S3Request) => S3Fault | Promise<S3Fault>) | undefined
  /** All that came, in order. */
  readonly requests: readonly S3Request[]
}

export const s3Bucket = 'backups'
export const s3Keys = { access_key: 'AKIDOFTHETEST', secret_key: 'correct horse battery staple' }

interface Upload {
  readonly key: string
  readonly parts: Map<number, Buffer>
}

/** A store that speaks the protocol of S3, in memory, with one bucket, uploads in parts, ranges, and faults on demand. */
export async function startS3Server(t: Test): Promise<S3Server> {
  const objects = new Map<string, Buffer>()
  const uploads = new Map<string, Upload>()
  const requests: S3Request[] = []
  const lab: { fault: S3Server['fault'] } = { fault: undefined }
  const server = createServer((request, response) => {
    void answer(request, response).catch(() => response.destroy())
  }).listen(0, '127.0.0.1')
  await once(server, 'listening')
  t.teardown(() => {
    server.closeAllConnections()
    server.close()
  })

  async function answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const url = new URL(request.url ?? '/', 'http://s3')
    const [bucket = '', ...rest] = decodeURIComponent(url.pathname.slice(1)).split('/')
    const key = rest.join('/')
    const part = url.searchParams.get('partNumber')
    const method = request.method ?? 'GET'
    const asked: S3Request = {
      method,
      key,
      part: part === null ? null : Number(part),
      number: requests.length
    }
    requests.push(asked)
    const fault = await lab.fault?.(asked)
    if (fault === 'cut') {
      request.socket.destroy()
      return
    }
    if (fault === 'silence') return
    const body = await bodyOf(request)
    if (fault === 'lost')
      response.end = () => {
        request.socket.destroy()
        return response
      }
    if (fault === 'refuse') return fail(response, 403, 'AccessDenied')
    if (fault === 'full') return fail(response, 507, 'InsufficientStorage')
    if (!(request.headers.authorization ?? '').includes(`Credential=${s3Keys.access_key}/`))
      return fail(response, 403, 'InvalidAccessKeyId')
    if (bucket !== s3Bucket) return fail(response, 404, 'NoSuchBucket')
    const uploadId = url.searchParams.get('uploadId')
    if (key === '') return bucketAnswer(method, url, response)
    if (method === 'POST' && url.searchParams.has('uploads')) {
      const id = randomUUID()
      uploads.set(id, { key, parts: new Map() })
      return xml(
        response,
        `<InitiateMultipartUploadResult><UploadId>${id}</UploadId></InitiateMultipartUploadResult>`
      )
    }
    if (uploadId !== null) return uploadAnswer({ method, key, uploadId, part: asked.part, body }, response)
    if (method === 'PUT') {
      objects.set(key, body)
      response.setHeader('etag', etag(body)).end()
      return
    }
    if (method === 'DELETE') {
      objects.delete(key)
      response.writeHead(204).end()
      return
    }
    const object = objects.get(key)
    if (object === undefined) return fail(response, 404, 'NoSuchKey')
    send(request, response, object, fault)
  }

  function bucketAnswer(method: string, url: URL, response: ServerResponse): void {
    if (method === 'HEAD') {
      response.end()
      return
    }
    const prefix = url.searchParams.get('prefix') ?? ''
    if (url.searchParams.has('uploads')) {
      const listed = [...uploads].filter(([, { key }]) => key.startsWith(prefix))
      const rows = listed.map(
        ([id, { key }]) => `<Upload><Key>${key}</Key><UploadId>${id}</UploadId></Upload>`
      )
      xml(response, `<ListMultipartUploadsResult>${rows.join('')}</ListMultipartUploadsResult>`)
      return
    }
    const rows = [...objects]
      .filter(([key]) => key.startsWith(prefix))
      .map(([key, { length }]) => `<Contents><Key>${key}</Key><Size>${length}</Size></Contents>`)
    xml(response, `<ListBucketResult>${rows.join('')}</ListBucketResult>`)
  }

  function uploadAnswer(
    {
      method,
      key,
      uploadId,
      part,
      body
    }: {
      readonly method: string
      readonly key: string
      readonly uploadId: string
      readonly part: number | null
      readonly body: Buffer
    },
    response: ServerResponse
  ): void {
    const upload = uploads.get(uploadId)
    if (upload === undefined) {
      fail(response, 404, 'NoSuchUpload')
      return
    }
    if (method === 'PUT' && part !== null) {
      upload.parts.set(part, body)
      response.setHeader('etag', etag(body)).end()
      return
    }
    uploads.delete(uploadId)
    if (method === 'DELETE') {
      response.writeHead(204).end()
      return
    }
    const named = [...body.toString().matchAll(/<PartNumber>(\d+)<\/PartNumber>/g)].map(([, number]) =>
      Number(number)
    )
    objects.set(key, Buffer.concat(named.map(number => upload.parts.get(number) ?? Buffer.alloc(0))))
    xml(response, `<CompleteMultipartUploadResult><Key>${key}</Key></CompleteMultipartUploadResult>`)
  }

  const { port } = server.address() as AddressInfo
  return {
    host: `127.0.0.1:${port}`,
    objects,
    requests,
    uploads: () => [...uploads.values()].map(({ key }) => key),
    replace: (key, content) => {
      objects.set(key, content)
    },
    lose: key => {
      objects.delete(key)
    },
    get fault() {
      return lab.fault
    },
    set fault(wanted) {
      lab.fault = wanted
    }
  }
}

function send(request: IncomingMessage, response: ServerResponse, object: Buffer, fault: S3Fault): void {
  const from = Number(/^bytes=(\d+)-$/.exec(request.headers.range ?? '')?.[1] ?? 0)
  const content = object.subarray(from)
  response.statusCode = from > 0 ? 206 : 200
  response.setHeader('content-length', content.length)
  response.setHeader('etag', etag(object))
  if (request.method === 'HEAD') {
    response.end()
    return
  }
  if (fault !== 'half') {
    response.end(content)
    return
  }
  response.write(content.subarray(0, Math.max(1, content.length >> 1)), () => {
    request.socket.destroy()
  })
}

async function bodyOf(request: IncomingMessage): Promise<Buffer> {
  const chunks: Buffer[] = []
  for await (const chunk of request) chunks.push(chunk)
  return Buffer.concat(chunks)
}

const etag = (content: Buffer): string => `"${createHash('md5').update(content).digest('hex')}"`

const xml = (response: ServerResponse, text: string): void => {
  response.setHeader('content-type', 'application/xml').end(`<?xml version="1.0"?>${text}`)
}

function fail(response: ServerResponse, status: number, code: string): void {
  response.statusCode = status
  xml(response, `<Error><Code>${code}</Code></Error>`)
}
