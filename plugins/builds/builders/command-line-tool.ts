import { access, constants, mkdir } from 'node:fs/promises'
import { delimiter, join } from 'node:path'
import type { ContainerRuntime } from 'busbar/api/containers'
import { type Exec, type ExecResult, type Instance, isProblem, type Problem } from 'busbar/sdk'
import type { BuildContext } from '../api.js'
import { problems } from '../problems.js'
import type { ToolVariables } from '../settings.js'
import { ToolOutput } from '../tool-output.js'

/** A foreign program that turns a source tree into an image on the engine. */
interface Tool {
  readonly program: string
  /** What it is, after its name. */
  readonly what: string
  /** How to get it: a sentence to follow literally. */
  readonly install: string
}

export interface ToolParts {
  readonly exec: Exec
  readonly runtime: ContainerRuntime
  readonly instance: Pick<Instance, 'directory'>
  /** Of the platform's environment, as far as they are set. */
  readonly variables: ToolVariables
}

interface ToolRun {
  readonly args: readonly string[]
  /** The application's variables. */
  readonly env: Readonly<Record<string, string>>
  /** What this program obeys beside what all of them do. */
  readonly own: Readonly<Record<string, string>>
  /** The source tree. */
  readonly directory: string
  /** For its temporary files: they go with the build, also when it is killed. */
  readonly scratch: string
  /** Explains a failure from the last lines of output; undefined: in general words. */
  readonly explain?: (output: string) => Problem | undefined
}

// The time limit of the build comes by the signal; this one only has to be longer.
const timeoutMs = 24 * 60 * 60_000
const maxAnswerBytes = 2 ** 20
/** Where programs are looked for without a PATH. */
const systemPath = ['/usr/local/bin', '/usr/bin', '/bin'].join(delimiter)

export class CommandLineTool {
  constructor(
    private readonly parts: ToolParts,
    private readonly tool: Tool
  ) {}

  /** Why it cannot be used on this machine; null when it can. */
  async unavailable(): Promise<string | null> {
    return this.#hasNoPath || (await this.#find()) !== undefined ? null : this.#missing().message
  }

  /** Throws what `unavailable` says. */
  async require(): Promise<void> {
    if (!this.#hasNoPath && (await this.#find()) === undefined) throw this.#missing()
  }

  /** Its file, to be run elsewhere. */
  async file(): Promise<string> {
    const found = await this.#find()
    if (found === undefined) throw this.#missing()
    return found
  }

  async run(run: ToolRun, context: BuildContext): Promise<void> {
    await this.#run(run, context, 0)
  }

  /** What it writes to its standard output, which is then no part of the log. */
  async ask(run: ToolRun, context: BuildContext): Promise<string> {
    const { stdout, truncated } = await this.#run(run, context, maxAnswerBytes)
    if (truncated)
      throw problems.toolNoFile({
        program: this.tool.program,
        what: 'answer',
        reason: `it is longer than ${maxAnswerBytes / 2 ** 20} MiB`
      })
    return stdout
  }

  /** With `answerBytes` its standard output is an answer of so many bytes at most. */
  async #run(
    { args, env, own, directory, scratch, explain }: ToolRun,
    { log, signal }: BuildContext,
    answerBytes: number
  ): Promise<Pick<ExecResult, 'stdout' | 'truncated'>> {
    const { program } = this.tool
    const output = new ToolOutput()
    const {
      exitCode,
      signal: endedBy,
      stdout,
      truncated
    } = await this.parts.exec
      .run([program, ...args], {
        cwd: directory,
        env: { ...env, ...(await this.#environment(scratch)), ...own },
        timeoutMs,
        maxOutputBytes: answerBytes,
        signal,
        onLine: (line, stream) => {
          const msg = output.take(line)
          if (msg === undefined) return
          if (stream === 'stderr' || answerBytes === 0) log({ level: 'info', stream, msg })
        }
      })
      .catch((error: unknown) => {
        signal.throwIfAborted()
        throw isProblem(error) && error.code === 'E_EXEC_NOT_FOUND' ? this.#missing() : error
      })
    if (exitCode === 0) return { stdout, truncated }
    throw (
      explain?.(output.text) ??
      problems.toolFailed({
        program,
        how: exitCode === null ? `was ended by ${endedBy ?? 'a signal'}` : `ended with exit code ${exitCode}`,
        reason: output.reason
      })
    )
  }

  /** What the program itself obeys. It comes after the application's variables, so none of those can replace it. */
  async #environment(scratch: string): Promise<Record<string, string>> {
    const { instance, runtime, variables } = this.parts
    // Its own: the platform's home may hold credentials that are not meant for users who deploy.
    const home = join(await instance.directory(), 'tools', this.tool.program)
    await mkdir(home, { recursive: true, mode: 0o700 })
    return {
      ...variables,
      ...(await runtime.commandEnvironment()),
      HOME: home,
      TMPDIR: scratch,
      LANG: 'C.UTF-8',
      NO_COLOR: '1'
    }
  }

  /** Without a PATH only starting it can tell. */
  get #hasNoPath(): boolean {
    return this.parts.variables.PATH === undefined
  }

  async #find(): Promise<string | undefined> {
    for (const folder of (this.parts.variables.PATH ?? systemPath).split(delimiter)) {
      const file = join(folder, this.tool.program)
      if (
        folder !== '' &&
        (await access(file, constants.X_OK).then(
          () => true,
          () => false
        ))
      )
        return file
    }
    return undefined
  }

  #missing() {
    return problems.toolMissing({ ...this.tool })
  }
}
