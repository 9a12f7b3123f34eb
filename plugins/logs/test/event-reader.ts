import type { IncomingMessage } from 'node:http'

interface LogEvent {
  readonly id?: string
  readonly event?: string
  readonly data: string
}

/** What is read of an event stream, as it comes. */
export interface EventReader {
  readonly events: LogEvent[]
  readonly comments: string[]
  readonly response: IncomingMessage
  isOver: boolean
  close(): void
}

export function readEvents(response: IncomingMessage): EventReader {
  const reader: EventReader = {
    events: [],
    comments: [],
    response,
    isOver: false,
    close: () => response.destroy()
  }
  let waiting = ''
  response.setEncoding('utf8')
  response.on('data', (chunk: string) => {
    const pieces = (waiting + chunk).split('\n\n')
    waiting = pieces.pop() ?? ''
    for (const piece of pieces) {
      const fields = piece.split('\n').map(line => /^([a-z]*): ?(.*)$/s.exec(line) ?? [])
      const field = (name: string) =>
        fields.filter(([, key]) => key === name).map(([, , value = '']) => value)
      if (fields[0]?.[1] === '') reader.comments.push(fields[0][2] ?? '')
      else
        reader.events.push({
          ...(field('id').length > 0 && { id: field('id')[0] ?? '' }),
          ...(field('event').length > 0 && { event: field('event')[0] ?? '' }),
          data: field('data').join('\n')
        })
    }
  })
  const over = (): void => {
    reader.isOver = true
  }
  response.on('close', over).on('end', over)
  return reader
}
