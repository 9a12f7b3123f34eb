import { type Bus, Turns } from 'busbar/sdk'
import type { ContainerLogEvent } from '../api.js'
import { levelOf, linesOf, streamOf } from '../kept/chunk.js'
import { LineTimes } from '../kept/line-time.js'
import { LineIds } from '../kept/log-id.js'
import type { KeptLines } from './log-writer.js'

/** Tells lines to those who listen, after they have been kept: who subscribes and then reads the history misses none. */
export async function publishLines({ container, ordinal, chunks }: KeptLines, bus: Bus): Promise<void> {
  const channel = `container-logs:${container.sourceId}`
  if (!bus.hasSubscribers(channel)) return
  const turns = new Turns()
  const times = new LineTimes()
  const ids = new LineIds()
  let at = ordinal
  for (const chunk of chunks)
    for (const { ms, nanos, kind, message } of linesOf(chunk)) {
      if (turns.isOver) await turns.pass()
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
