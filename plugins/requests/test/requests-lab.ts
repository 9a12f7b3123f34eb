import type { IncomingMessage } from 'node:http'
import { TestClient, type TestKernel, until } from 'busbar/sdk/testing'
import { type ProxiedRequest, requestRecorder } from '../api.js'
import type { RequestLog } from '../schemas.js'

export const all = '/api/requests'

/** A request as a proxy tells of it. */
export const asked = (fields: Partial<ProxiedRequest> = {}): ProxiedRequest => ({
  id: null,
  hostname: 'www.example.com',
  method: 'GET',
  path: '/',
  statusCode: 200,
  latencyMs: 12,
  requestSize: 0,
  responseSize: 345,
  clientIp: '203.0.113.9',
  userAgent: 'curl/8',
  at: Date.now(),
  ...fields
})

export function record(k: TestKernel, ...requests: ReadonlyArray<Partial<ProxiedRequest>>): void {
  const recorder = k.service(requestRecorder)
  for (const request of requests) recorder.record(asked(request))
}

export const rowsOf = async (client: TestClient, path = all, query = ''): Promise<RequestLog[]> =>
  (await client.get(path + query)).body as RequestLog[]
export const pathsOf = async (client: TestClient, path = all, query = ''): Promise<string[]> =>
  (await rowsOf(client, path, query)).map(row => row.path)

/** Waits until so many are stored. */
export async function stored(k: TestKernel, count: number): Promise<void> {
  await until(async () => (await storedPaths(k)).length >= count, `${count} requests are stored`)
}

/** In the order in which they were stored. */
export const storedPaths = async (k: TestKernel): Promise<string[]> =>
  (await k.query<{ path: string }>('select path from requests.request order by position')).map(
    ({ path }) => path
  )

interface Event {
  readonly id: string
  readonly data: RequestLog
}

/** An event stream that is read as it comes. */
export class Stream {
  readonly events: Event[] = []
  pings = 0
  isOver = false
  #rest = ''

  private constructor(readonly answer: IncomingMessage) {
    answer.setEncoding('utf8')
    answer.on('data', (text: string) => {
      this.#take(text)
    })
    answer.on('close', () => {
      this.isOver = true
    })
  }

  static async open(client: TestClient, path: string, lastEventId?: string): Promise<Stream> {
    const headers: Record<string, string> = lastEventId === undefined ? {} : { 'last-event-id': lastEventId }
    const stream = new Stream(
      await new TestClient(client.url, { ...client.credential, ...headers }).open(path)
    )
    await until(() => stream.pings > 0, 'the stream is open')
    return stream
  }

  get paths(): string[] {
    return this.events.map(({ data }) => data.path)
  }

  async has(count: number): Promise<void> {
    await until(() => this.events.length >= count, `${count} events have come`)
  }

  close(): void {
    this.answer.destroy()
  }

  #take(text: string): void {
    const parts = (this.#rest + text).split('\n\n')
    this.#rest = parts.pop() ?? ''
    for (const part of parts) {
      const [first = '', second = ''] = part.split('\n')
      if (part === ': ping') this.pings++
      else
        this.events.push({
          id: first.slice('id: '.length),
          data: JSON.parse(second.slice('data: '.length)) as RequestLog
        })
    }
  }
}
