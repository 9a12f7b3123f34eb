import type { ContainerRuntime } from 'busbar/api/containers'
import { type Clock, isProblem, type Problem, withTimeLimit } from 'busbar/sdk'
import type { EngineProgram } from '../api.js'
import { buildEngineProblems } from './engine-problems.js'

interface ReadinessParts {
  readonly runtime: Pick<ContainerRuntime, 'exec' | 'inspect' | 'tail'>
  readonly clock: Clock
}

/** How long a build engine may take to start. */
export const readyMs = 30_000
const lookMs = 100

/** Resolves when the daemon in the container takes builds; rejects with 503 E_BUILD_ENGINE when it ends, or does not in time. */
export async function untilReady(
  { runtime, clock }: ReadinessParts,
  program: EngineProgram,
  containerId: string,
  signal: AbortSignal
): Promise<void> {
  const { argv, env } = program.ready
  const reason = () => buildEngineProblems.away({ reason: `it was not ready after ${readyMs / 1000} s` })
  await withTimeLimit({ clock, signal, ms: readyMs, reason }, async limit => {
    for (;;) {
      let refusal: Problem | undefined
      const code = await runtime
        .exec(containerId, argv, { env, signal: limit, onLine: () => {} })
        .catch((error: unknown) => {
          limit.throwIfAborted()
          if (!isProblem(error)) throw error
          refusal = error
          return undefined
        })
      if (code === 0) return
      // The Docker Engine refuses in several words what it finds to have ended under its hands.
      const state = await runtime.inspect(containerId)
      if (state === undefined || state.status === 'exited' || state.status === 'dead') {
        const output = await runtime.tail(containerId, 5).catch(() => [])
        throw buildEngineProblems.away({
          reason: [`it ended with code ${state?.exitCode ?? 'unknown'}`, ...output].join(' ').slice(0, 600)
        })
      }
      if (refusal !== undefined && refusal.code !== 'E_CONTAINER_NOT_RUNNING') throw refusal
      await clock.sleep(lookMs, limit)
    }
  })
}
