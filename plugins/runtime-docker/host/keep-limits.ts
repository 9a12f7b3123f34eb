import type { Clock, Log } from 'busbar/sdk'
import type { DockerRuntime } from '../docker-runtime.js'

/** A reload of the machine's firewall removes our rules without a notification. */
const everyMs = 300_000

/** Sets the rules when the engine answers (again) and from time to time, until `signal` aborts. */
export async function keepLimits(
  runtime: DockerRuntime,
  clock: Clock,
  log: Log,
  signal: AbortSignal
): Promise<void> {
  const limit = async (): Promise<void> => {
    // While the engine is away nothing is started either; whatever else is wrong, the next deploy says it too.
    await runtime.limits.refresh().catch((error: unknown) => {
      log.debug({ err: error }, 'the limits of what containers reach of their machine were not looked at')
    })
  }
  await runtime.goOnWithPaused().catch((error: unknown) => {
    log.debug({ err: error }, 'it could not be seen whether a container is paused')
  })
  const stop = clock.every(everyMs, limit)
  try {
    for await (const event of runtime.events(signal)) if (event.kind === 'resync') await limit()
  } finally {
    stop()
  }
}
