import type { IncomingMessage } from 'node:http'
import { type TestClient, until } from 'busbar/sdk/testing'

/** An event stream that is open, with what has come of it. */
interface EventReader {
  readonly response: IncomingMessage
  /** All that has come, as it came. */
  text(): string
  /** What has come as data, from JSON. */
  data(): any[]
  /** Whether the platform has ended it. */
  hasEnded(): boolean
  close(): void
}

export async function openEvents(client: TestClient, path: string): Promise<EventReader> {
  const response = await client.open(path)
  let text = ''
  let hasEnded = false
  response.setEncoding('utf8')
  response.on('data', (chunk: string) => {
    text += chunk
  })
  response.on('close', () => {
    hasEnded = true
  })
  const reader: EventReader = {
    response,
    text: () => text,
    data: () => [...text.matchAll(/^data: (.*)$/gm)].map(match => JSON.parse(match[1] ?? '')),
    hasEnded: () => hasEnded,
    close: () => {
      response.destroy()
    }
  }
  if (response.statusCode === 200) await until(() => reader.text() !== '', 'the first ping')
  return reader
}
