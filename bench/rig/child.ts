import { type ChildProcess, fork } from 'node:child_process'
import { once } from 'node:events'
import { endsWithBenchmark } from './leftovers.js'

/** What a child process can be asked to do. Arguments and results cross a pipe as JSON. */
type Commands = Readonly<Record<string, (...args: never[]) => unknown>>

interface ChildOptions {
  readonly args?: readonly string[]
  readonly environment?: Readonly<Record<string, string>>
  readonly execArgv?: readonly string[]
  /** A file descriptor for its standard output; the terminal's standard error otherwise. */
  readonly output?: number
}

/** `BENCH_PROFILE=<folder>` keeps a CPU profile of every process. */
const profile = process.env.BENCH_PROFILE
const profiling = profile === undefined || profile === '' ? [] : ['--cpu-prof', `--cpu-prof-dir=${profile}`]

interface Question {
  readonly id: number
  readonly name: string
  readonly args: readonly unknown[]
}
interface Answer {
  readonly id: number
  readonly value?: unknown
  readonly error?: string
}

/** A process of the benchmark that answers questions: a server, or what loads one. */
export class Child<Ready, C extends Commands> {
  readonly #waiting = new Map<number, { resolve: (value: unknown) => void; reject: (error: Error) => void }>()
  #asked = 0

  private constructor(
    readonly process: ChildProcess,
    readonly pid: number,
    readonly ready: Ready
  ) {
    process.on('message', ({ id, value, error }: Answer) => {
      const waiting = this.#waiting.get(id)
      this.#waiting.delete(id)
      if (error === undefined) waiting?.resolve(value)
      else waiting?.reject(new Error(error))
    })
    process.on('exit', code => {
      for (const { reject } of this.#waiting.values())
        reject(new Error(`a process of the benchmark ended with ${code}`))
    })
  }

  /** Resolves when the process says that it is ready. */
  static async start<Ready, C extends Commands>(
    file: URL,
    { args = [], environment = {}, execArgv = [], output = 2 }: ChildOptions = {}
  ): Promise<Child<Ready, C>> {
    const child = fork(file, args, {
      env: { ...process.env, ...environment },
      execArgv: [...profiling, ...execArgv],
      stdio: ['ignore', output, 'inherit', 'ipc']
    })
    const first = await Promise.race([
      once(child, 'message') as Promise<[Ready]>,
      once(child, 'exit').then(([code]) => {
        throw new Error(`${file.pathname} ended with ${String(code)} before it was ready`)
      })
    ])
    const started = new Child<Ready, C>(child, child.pid ?? 0, first[0])
    child.once(
      'exit',
      endsWithBenchmark(async () => {
        await started.stop()
      })
    )
    return started
  }

  async ask<K extends keyof C & string>(
    name: K,
    ...args: Parameters<C[K]>
  ): Promise<Awaited<ReturnType<C[K]>>> {
    const id = this.#asked++
    const answer = new Promise<unknown>((resolve, reject) => {
      this.#waiting.set(id, { resolve, reject })
    })
    this.process.send({ id, name, args } satisfies Question)
    return (await answer) as Awaited<ReturnType<C[K]>>
  }

  async stop(): Promise<void> {
    if (this.process.exitCode !== null || this.process.signalCode !== null) return
    const ended = once(this.process, 'exit')
    this.process.kill('SIGTERM')
    await ended
  }
}

/** In the child: says that it is ready, and answers until its parent is gone. */
export function serveParent<C extends Commands>(ready: unknown, commands: C): void {
  process.on('disconnect', () => {
    process.exit()
  })
  process.on('message', ({ id, name, args }: Question) => {
    const answer = async (): Promise<Answer> => {
      try {
        return { id, value: await commands[name]?.(...(args as never[])) }
      } catch (error) {
        return { id, error: (error as Error).stack ?? String(error) }
      }
    }
    void answer().then(message => process.send?.(message))
  })
  process.send?.(ready)
}
