import type { Problem } from 'busbar/sdk'
import type Docker from 'dockerode'
import type { EngineClient } from './engine-client.js'
import { asReadable, jsonLines } from './output-lines.js'

/** Reads a stream of events to its end. Failures arrive as events of a stream that began well, or as a refusal. */
export async function followProgress(
  engine: EngineClient,
  task: string,
  signal: AbortSignal,
  open: (docker: Docker) => Promise<NodeJS.ReadableStream>,
  explain: (words: string) => Problem,
  onEvent: (event: Readonly<Record<string, unknown>>) => void | Promise<void>
): Promise<void> {
  signal.throwIfAborted()
  try {
    await engine.call(
      task,
      async docker => {
        for await (const event of jsonLines(asReadable(await open(docker)))) {
          if (typeof event.error === 'string') throw explain(event.error)
          await onEvent(event)
        }
      },
      {
        patient: true,
        explain: ({ statusCode, words }) => (statusCode === undefined ? undefined : explain(words))
      }
    )
  } catch (error) {
    // Whatever broke when the caller gave up, that it gave up is why.
    signal.throwIfAborted()
    throw error
  }
  signal.throwIfAborted()
}

/** Of the `progressDetail` of an event; 0 where the engine does not say. */
export function currentBytes(detail: unknown): number {
  const count: unknown =
    typeof detail === 'object' && detail !== null ? Reflect.get(detail, 'current') : undefined
  return typeof count === 'number' ? count : 0
}
