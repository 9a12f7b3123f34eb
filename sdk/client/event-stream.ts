/** One server-sent event. */
interface StreamedEvent {
  readonly id: string | undefined
  readonly event: string
  readonly data: string
}

/** The events of a `text/event-stream`, as they come. */
export async function* eventsIn(body: ReadableStream<Uint8Array>): AsyncGenerator<StreamedEvent> {
  const reader = body.getReader()
  const decoder = new TextDecoder()
  let rest = ''
  try {
    for (;;) {
      const { done, value } = await reader.read()
      // What the stream breaks off within is not whole, and comes again.
      if (done) return
      rest += decoder.decode(value, { stream: true })
      const blocks = rest.split('\n\n')
      rest = blocks.pop() ?? ''
      for (const block of blocks) {
        const event = eventOf(block)
        if (event !== undefined) yield event
      }
    }
  } finally {
    await reader.cancel().catch(() => {})
  }
}

function eventOf(block: string): StreamedEvent | undefined {
  const fields = block.split('\n').map(line => {
    const colon = line.indexOf(':')
    return colon < 0
      ? ([line, ''] as const)
      : ([line.slice(0, colon), line.slice(colon + 1).replace(/^ /, '')] as const)
  })
  const data = fields.filter(([name]) => name === 'data')
  if (data.length === 0) return undefined
  const last = (wanted: string): string | undefined => fields.findLast(([name]) => name === wanted)?.[1]
  return {
    id: last('id'),
    event: last('event') ?? 'message',
    data: data.map(([, value]) => value).join('\n')
  }
}
