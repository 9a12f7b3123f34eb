import { type IncomingHttpHeaders, type IncomingMessage, request } from 'node:http'

/** An answer of the platform. `body` is parsed JSON where it is JSON, text otherwise, null when empty. */
export interface TestAnswer {
  readonly status: number
  readonly headers: IncomingHttpHeaders
  // Tests look into answers of every shape; a wrong guess fails the test, which is what it is for.
  readonly body: any
}

export interface TestRequest {
  readonly headers?: Readonly<Record<string, string>>
  /** Sent as JSON; a string or Buffer is sent as it is. */
  readonly body?: unknown
}

/** Someone who calls the API: with a session's cookies, a token, or nothing. */
export class TestClient {
  constructor(
    readonly url: string,
    readonly credential: Readonly<Record<string, string>> = {},
    /** The user behind the credential; undefined for an anonymous client. */
    readonly userId: string | undefined = undefined
  ) {}

  async get(path: string, options: TestRequest = {}): Promise<TestAnswer> {
    return await this.send('GET', path, options)
  }
  async post(path: string, body?: unknown, options: TestRequest = {}): Promise<TestAnswer> {
    return await this.send('POST', path, { ...options, body })
  }
  async put(path: string, body?: unknown, options: TestRequest = {}): Promise<TestAnswer> {
    return await this.send('PUT', path, { ...options, body })
  }
  async patch(path: string, body?: unknown, options: TestRequest = {}): Promise<TestAnswer> {
    return await this.send('PATCH', path, { ...options, body })
  }
  async delete(path: string, options: TestRequest = {}): Promise<TestAnswer> {
    return await this.send('DELETE', path, options)
  }

  /**
   * Sends a `GET`, and resolves with the answer while it is still coming: an event stream, or a download. A caller that asks
   * reads it, and ends the request with `destroy()`. One that is cut off says so only to who reads it.
   */
  async open(path: string): Promise<IncomingMessage> {
    return await new Promise<IncomingMessage>((resolve, reject) => {
      const call = request(this.url + path, { headers: this.credential, agent: false }, response => {
        response.on('error', () => {})
        resolve(response)
      })
      // What comes after the answer has begun is the answer's.
      call.on('error', reject)
      call.end()
    })
  }

  async send(method: string, path: string, { headers = {}, body }: TestRequest = {}): Promise<TestAnswer> {
    const isRaw = typeof body === 'string' || Buffer.isBuffer(body)
    const payload = body === undefined ? undefined : isRaw ? body : JSON.stringify(body)
    const sent = {
      ...this.credential,
      ...(payload === undefined
        ? {}
        : { 'content-type': 'application/json', 'content-length': String(Buffer.byteLength(payload)) }),
      ...headers
    }
    return await new Promise<TestAnswer>((resolve, reject) => {
      const call = request(this.url + path, { method, headers: sent, agent: false }, response => {
        const chunks: Buffer[] = []
        response.on('data', (chunk: Buffer) => chunks.push(chunk))
        response.on('error', reject)
        response.on('end', () => {
          const text = Buffer.concat(chunks).toString()
          const isJson = (response.headers['content-type'] ?? '').includes('json')
          try {
            resolve({
              status: response.statusCode ?? 0,
              headers: response.headers,
              body: text === '' ? null : isJson ? JSON.parse(text) : text
            })
          } catch (error) {
            // In a content coding, for one: what a test asks for, it reads itself.
            reject(error)
          }
        })
      })
      call.on('error', reject)
      call.end(payload)
    })
  }
}
