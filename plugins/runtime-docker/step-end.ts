import { withTimeLimit } from 'busbar/sdk'
import type Docker from 'dockerode'
import type { EngineClient } from './engine-client.js'

/** Longer than it takes to copy what a step may have written, on most disks. */
const longestCopyMs = 60_000

/**
 * How long the engine may still need to keep a step that has ended well: it copies what the step has written, also when
 * the build was cancelled, and removes the container when the image is there. One that failed, or was killed with its
 * engine, is not kept.
 */
export function copyMs(
  { Status: status, ExitCode: code, FinishedAt: finishedAt }: Docker.ContainerInspectInfo['State'],
  now: Date
): number {
  if (status !== 'exited' || code !== 0) return 0
  const left = new Date(finishedAt).getTime() + longestCopyMs - now.getTime()
  return Math.min(longestCopyMs, Math.max(0, left))
}

/** The engine removes the containers of a build when it has ended, and with it all that it still made. */
export async function untilEngineRemoves(
  engine: EngineClient,
  containerId: string,
  withinMs: number
): Promise<void> {
  await withTimeLimit({ ms: withinMs }, async abortSignal => {
    await engine
      .call(
        'end a build',
        async docker => {
          await docker.getContainer(containerId).wait({ condition: 'removed', abortSignal })
        },
        { absent: [404], patient: true }
      )
      .catch((error: unknown) => {
        if (!abortSignal.aborted) throw error
      })
  })
}
