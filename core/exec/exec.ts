import { type ChildProcess, spawn } from 'node:child_process'
import { setMaxListeners } from 'node:events'
import { stat } from 'node:fs/promises'
import { type ExecOptions, type ExecResult, isProblem, type Log } from 'busbar/sdk'
import { CappedOutput } from './capped-output.js'
import { LinesInTurns } from './lines-in-turns.js'
import { problems, remedyFor } from './problems.js'
import { forgetGroup, killGraceMs, signalGroup, trackGroup } from './process-group.js'

const longestTimerMs = 2 ** 31 - 1
const defaultMaxOutputBytes = 1024 * 1024

/** How long output may still come after the program itself has ended; then the processes that it left behind are killed. */
const drainMs = 250
/** The same while lines are still passed on, for which what it printed last waits. */
const longestDrainMs = 10_000

/** Processes for plugins, and a way to end them all. */
export function createExec({ log }: { readonly log: Log }) {
  const closed = new AbortController()
  setMaxListeners(0, closed.signal)
  const runs = new Set<Promise<unknown>>()

  async function run(argv: readonly [string, ...string[]], options: ExecOptions): Promise<ExecResult> {
    const [program] = argv
    const aborts = options.signal === undefined ? [closed.signal] : [closed.signal, options.signal]
    for (const abort of aborts) abort.throwIfAborted()
    if (argv.some(argument => argument.includes('\0'))) throw problems.badArgument({ program })
    const startedAt = performance.now()
    try {
      const result = await runProcess(argv, options, aborts)
      const { exitCode, signal, timedOut, truncated } = result
      // Arguments may hold secrets: only the program's name is shown.
      log.debug(
        { program, exitCode, signal, timedOut, truncated, ms: Math.round(performance.now() - startedAt) },
        'process ended'
      )
      return result
    } catch (error) {
      throw await startProblem(error, program, options.cwd)
    }
  }

  return {
    run(argv: readonly [string, ...string[]], options: ExecOptions): Promise<ExecResult> {
      const running = run(argv, options)
      runs.add(running)
      running.then(
        () => runs.delete(running),
        () => runs.delete(running)
      )
      return running
    },
    /** Ends every running process; later calls are refused. Resolves when all are gone. */
    async close(): Promise<void> {
      closed.abort(problems.failed({ program: 'a process', reason: 'the platform is stopping' }))
      await Promise.allSettled(runs)
    }
  }
}

function runProcess(
  argv: readonly [string, ...string[]],
  options: ExecOptions,
  aborts: readonly AbortSignal[]
): Promise<ExecResult> {
  const [program, ...args] = argv
  return new Promise((resolve, reject) => {
    const child = spawn(program, args, {
      cwd: options.cwd,
      env: {
        PATH: process.env.PATH,
        HOME: process.env.HOME,
        LANG: process.env.LANG,
        ...options.env
      },
      stdio: [options.input === undefined ? 'ignore' : 'pipe', 'pipe', 'pipe'],
      // A group of its own, so that one signal reaches all that it starts.
      detached: true,
      windowsHide: true
    })
    if (child.pid === undefined) {
      child.once('error', reject)
      return
    }
    const groupId = child.pid
    trackGroup(groupId)
    let timedOut = false
    let killTimer: NodeJS.Timeout | undefined

    const kill = () => {
      signalGroup(groupId, 'SIGTERM')
      killTimer ??= setTimeout(() => signalGroup(groupId, 'SIGKILL'), killGraceMs)
    }
    const timeout =
      options.timeoutMs === Number.POSITIVE_INFINITY
        ? undefined
        : setTimeout(
            () => {
              timedOut = true
              kill()
            },
            Math.min(options.timeoutMs, longestTimerMs)
          )
    for (const abort of aborts) abort.addEventListener('abort', kill, { once: true })

    let failure: { readonly reason: unknown } | undefined
    const outputs = collectOutput(child, options, reason => {
      failure ??= { reason }
      kill()
    })
    // The input may be of no interest to the program.
    child.stdin?.on('error', () => {})
    child.stdin?.end(options.input)

    let drainTimer: NodeJS.Timeout | undefined
    child.once('exit', () => {
      drainTimer = setTimeout(() => {
        signalGroup(groupId, 'SIGKILL')
        const endsAt = performance.now() + longestDrainMs
        // What has come so far says nothing of what is still to come.
        outputs.isComing()
        // A process that left the group may still hold the pipes; it is not waited for.
        const giveUp = (): void => {
          if (outputs.isComing() && performance.now() < endsAt) {
            drainTimer = setTimeout(giveUp, drainMs)
          } else {
            child.stdout?.destroy()
            child.stderr?.destroy()
          }
        }
        drainTimer = setTimeout(giveUp, drainMs)
      }, drainMs)
    })
    child.once('error', error => {
      if (child.exitCode === null) reject(error)
    })
    child.once('close', (exitCode, signal) => {
      for (const timer of [timeout, killTimer, drainTimer]) clearTimeout(timer)
      for (const abort of aborts) abort.removeEventListener('abort', kill)
      signalGroup(groupId, 'SIGKILL')
      forgetGroup(groupId)
      const settle = ({ stdout, stderr }: Awaited<ReturnType<typeof outputs.end>>): void => {
        const aborted = aborts.find(abort => abort.aborted)
        if (aborted !== undefined) reject(aborted.reason)
        else if (failure !== undefined) reject(failure.reason)
        else
          resolve({
            exitCode,
            signal,
            stdout: stdout.text(),
            stderr: stderr.text(),
            truncated: stdout.isTruncated || stderr.isTruncated,
            timedOut
          })
      }
      outputs.end().then(settle, reject)
    })
  })
}

function collectOutput(
  child: ChildProcess,
  { maxOutputBytes = defaultMaxOutputBytes, onLine }: ExecOptions,
  onFailure: (reason: unknown) => void
) {
  const collect = (stream: 'stdout' | 'stderr') => {
    const output = new CappedOutput(maxOutputBytes)
    const source = child[stream]
    const lines =
      onLine === undefined || source === null
        ? undefined
        : new LinesInTurns(source, line => {
            try {
              onLine(line, stream)
            } catch (error) {
              onFailure(error)
            }
          })
    source?.on('data', (chunk: Buffer) => {
      output.push(chunk)
      lines?.push(chunk)
    })
    return { output, lines }
  }
  const stdout = collect('stdout')
  const stderr = collect('stderr')
  return {
    /** Both are asked, so that each tells next time what has come since now. Without `onLine` none says so. */
    isComing: () => [stdout, stderr].map(({ lines }) => lines?.isComing() === true).includes(true),
    async end() {
      await Promise.all([stdout.lines?.end(), stderr.lines?.end()])
      return { stdout: stdout.output, stderr: stderr.output }
    }
  }
}

/** Why it did not start, in words. A missing directory is reported by the system as a missing program. */
async function startProblem(error: unknown, program: string, cwd: string | undefined): Promise<unknown> {
  // Thrown by the caller's own onLine, or the reason of its signal: not a failed start.
  if (isProblem(error)) return error
  const code = error instanceof Error && 'code' in error ? error.code : undefined
  const isDirectory =
    cwd === undefined ||
    (await stat(cwd).then(
      found => found.isDirectory(),
      () => false
    ))
  if ((code === 'ENOENT' || code === 'ENOTDIR') && !isDirectory) return problems.noDirectory({ program, cwd })
  if (code === 'ENOENT') return problems.notFound({ program, remedy: remedyFor(program) })
  if (code === 'EACCES') return problems.notExecutable({ program })
  return code === undefined ? error : problems.failed({ program, reason: String(code) })
}
