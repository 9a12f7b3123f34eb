import type { ContainerRuntime, OutputLine } from 'busbar/api/containers'
import { type Clock, pause, withTimeLimit } from 'busbar/sdk'
import type { EngineCommand } from '../api.js'

interface RunParts {
  readonly runtime: ContainerRuntime
  readonly clock: Pick<Clock, 'now' | 'sleep'>
}

interface EngineRun {
  readonly containerId: string
  /** Of the build alone: which process it is, is noted there. */
  readonly directory: string
  readonly command: EngineCommand
  readonly onLine: (line: OutputLine) => void
  /** It did not end when it was asked to: the daemon may not have heard of it, and go on. */
  readonly onKilled?: () => void
}

/**
 * Runs the program of a build in the container of its engine; its exit code. When the signal aborts, the program is ended with all
 * that it has started, and waited for: the container would go on after a client that is gone.
 */
export async function runInEngine(
  { runtime, clock }: RunParts,
  { containerId, directory, command, onLine, onKilled }: EngineRun,
  signal: AbortSignal
): Promise<number> {
  signal.throwIfAborted()
  const running = runtime.exec(containerId, ['sh', '-c', noted, directory, ...command.argv], {
    env: command.env,
    directory,
    signal: new AbortController().signal,
    onLine
  })
  const ended = new AbortController()
  const onAbort = async (): Promise<void> => {
    for (const signalName of ['TERM', 'KILL'] as const) {
      if (signalName === 'KILL') onKilled?.()
      await aside({ runtime, clock }, containerId, { argv: ['sh', '-c', ending, directory, signalName] })
      await pause(clock, endsWithinMs, ended.signal)
      if (ended.signal.aborted) return
    }
    // Its steps may have taken every process, so that none can be started to end them.
    await runtime.stop(containerId, 0).catch(() => {})
  }
  let whenEnded: Promise<void> | undefined
  const abort = (): void => {
    whenEnded = onAbort()
  }
  signal.addEventListener('abort', abort, { once: true })
  try {
    const code = await running
    signal.throwIfAborted()
    return code
  } finally {
    signal.removeEventListener('abort', abort)
    ended.abort()
    await whenEnded
  }
}

/** Notes which process it is, and becomes the program. */
const noted = 'echo $$ > "$0/process"; exec "$@"'
/** The process and those that it has started, which have its group. */
const ending = 'kill "-$1" "-$(cat "$0/process")"'
const endsWithinMs = 5000
const asideMs = 60_000

/** A command whose failure changes nothing; whether it did what it should. */
export async function aside(
  { runtime, clock }: RunParts,
  containerId: string,
  { argv, env = {} }: Pick<EngineCommand, 'argv'> & Partial<EngineCommand>
): Promise<boolean> {
  return await withTimeLimit({ clock, ms: asideMs }, async signal =>
    runtime.exec(containerId, argv, { env, signal, onLine: () => {} })
  ).then(
    code => code === 0,
    () => false
  )
}
