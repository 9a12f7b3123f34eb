import { type Bus, Turns } from 'busbar/sdk'
import type { ContainerLogEvent } from '../api.js'
import { levelOf, linesOf, streamOf } from '../kept/chunk.js'
import { LineTimes } from '../kept/line-time.js'
import { LineIds } from '../kept/log-id.js'
import type { KeptLines } from './log-writer.js'

/** Between two looks at whether there is room for more, in characters: in JSON it may be six times as much. */
const charactersAtOnce = 64 * 1024
/** Of what a line has besides its text. */
const charactersBeside = 256

/** Tells lines to those who listen, after they have been kept: who subscribes and then reads the history misses none. */
export async function publishLines(
  { container, ordinal, chunks }: KeptLines,
  bus: Bus,
  signal: AbortSignal
): Promise<void> {
  const channel = `container-logs:${container.sourceId}`
  if (!bus.hasSubscribers(channel)) return
  const turns = new Turns()
  const times = new LineTimes()
  const ids = new LineIds()
  let at = ordinal
  // Many who have little each ask first too.
  let characters = charactersAtOnce
  for (const chunk of chunks)
    for (const { ms, nanos, kind, message } of linesOf(chunk)) {
      if (turns.isOver || characters >= charactersAtOnce) {
        if (turns.isOver) await turns.pass()
        await bus.room(channel)
        if (signal.aborted) return
        characters = 0
      }
      characters += message.length + charactersBeside
      bus.publish(channel, 'log', {
        id: ids.of({ ms, nanos, ordinal: at++ }),
        level: levelOf(kind),
        stream: streamOf(kind),
        message,
        recorded_at: times.write({ ms, nanos }),
        container_id: container.containerId,
        deployment_id: container.deploymentId ?? ''
      } satisfies ContainerLogEvent)
    }
}
