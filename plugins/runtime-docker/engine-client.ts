import { Agent as HttpAgent } from 'node:http'
import { Agent as HttpsAgent } from 'node:https'
import { setTimeout as sleep } from 'node:timers/promises'
import { inspect } from 'node:util'
import type { Problem } from 'busbar/sdk'
import type Docker from 'dockerode'
import type { DockerOptions } from 'dockerode'
import type { TakeBytes } from './answers/answer-body.js'
import { EngineAnswer } from './answers/engine-answer.js'
import { connectionOptions, findEngine } from './engine-address.js'
import {
  type EngineError,
  engineProblem,
  isUnreachable,
  readEngineError,
  tellsOfRemoval
} from './engine-failure.js'
import { loadDockerode } from './load-dockerode.js'
import { OpenConnections } from './open-connections.js'
import type { EngineSettings } from './settings.js'
import { readWholeAnswers } from './whole-answers.js'

/**
 * docker-modem describes every call for its debug log, whether or not that log is on. Without this
 * the agent, with all its connections, made up most of what a call cost.
 */
const briefly = { [inspect.custom]: () => 'the agent' }

/** How long the engine may be silent, also in the middle of an answer, before an ordinary call fails. */
const usualSilenceMs = 60_000

interface Connection {
  readonly address: string
  readonly options: DockerOptions
  /** For calls that are answered at once. */
  readonly prompt: Docker
  /** For streams, and for calls that are rightly silent for as long as they like. */
  readonly patient: Docker
}

interface CallOptions {
  /** Names a refusal in the caller's terms; undefined leaves it to the general words. */
  readonly explain?: (failure: EngineError) => Problem | undefined
  /** The engine may be silent for as long as it likes. */
  readonly patient?: true
  /** What is asked for goes through all images: asked again where the engine stumbles over one that is being removed. */
  readonly lists?: true
}

const removalPausesMs = [50, 100, 200, 400, 800, 1600] as const

/**
 * The way to the engine. It is looked for on first use, and again after it was lost, so that the platform
 * may be started before dockerd.
 */
export class EngineClient {
  #connection: Promise<Connection> | undefined
  readonly #open = new OpenConnections()

  constructor(
    private readonly settings: EngineSettings,
    private readonly silenceMs = usualSilenceMs
  ) {}

  /**
   * One exchange with the engine; a failure becomes a `Problem`. `task` completes "refused to …".
   * The call is undefined when the engine answers with one of the statuses in `absent`.
   */
  call<T>(
    task: string,
    run: (docker: Docker) => Promise<T>,
    options: CallOptions & { readonly absent: readonly number[] }
  ): Promise<T | undefined>
  call<T>(task: string, run: (docker: Docker) => Promise<T>, options?: CallOptions): Promise<T>
  async call<T>(
    task: string,
    run: (docker: Docker) => Promise<T>,
    options: CallOptions & { readonly absent?: readonly number[] } = {}
  ): Promise<T | undefined> {
    const exchange = async (): Promise<T | undefined> =>
      await this.#exchange(
        task,
        async ({ prompt, patient }) => await run(options.patient === true ? patient : prompt),
        options
      )
    if (options.lists === true)
      for (const ms of removalPausesMs)
        try {
          return await exchange()
        } catch (error) {
          if (!tellsOfRemoval(error)) throw error
          await sleep(ms)
        }
    return await exchange()
  }

  /**
   * The same for what the engine goes on telling for as long as it likes, and by lines: the body is given to `take` while `more` is asked for.
   * Who does not read it to its end destroys it.
   */
  async open(
    task: string,
    path: string,
    take: TakeBytes,
    options: Pick<CallOptions, 'explain'> & { readonly signal: AbortSignal }
  ): Promise<EngineAnswer> {
    const answer = await this.#exchange(
      task,
      async connection => await EngineAnswer.open(connection.options, path, take, options.signal),
      options
    )
    if (answer === undefined) throw new Error('an answer that may not be absent is')
    return answer
  }

  async #exchange<T>(
    task: string,
    run: (connection: Connection) => Promise<T>,
    options: CallOptions & { readonly absent?: readonly number[] }
  ): Promise<T | undefined> {
    this.#connection ??= connect(this.settings, this.silenceMs, this.#open)
    const attempt = this.#connection
    const connection = await attempt.catch((error: unknown) => {
      this.#forget(attempt)
      throw error
    })
    try {
      return await run(connection)
    } catch (error) {
      const failure = readEngineError(error)
      if (isUnreachable(error)) this.#forget(attempt)
      if (failure.statusCode !== undefined && options.absent?.includes(failure.statusCode) === true)
        return undefined
      throw options.explain?.(failure) ?? engineProblem(error, connection.address, task)
    }
  }

  /** What is read of a stream that `call` or `open` has given; a failure becomes a `Problem` here too. */
  async *reading<T>(task: string, pieces: AsyncIterable<T>): AsyncGenerator<T> {
    try {
      yield* pieces
    } catch (error) {
      throw engineProblem(error, findEngine(this.settings).text, task)
    }
  }

  /** What is still asked of the engine fails: nobody waits for it any more. */
  close(): void {
    this.#open.destroy()
  }

  #forget(attempt: Promise<Connection>): void {
    if (this.#connection === attempt) this.#connection = undefined
  }
}

async function connect(
  settings: EngineSettings,
  silenceMs: number,
  open: OpenConnections
): Promise<Connection> {
  const address = findEngine(settings)
  const options = connectionOptions(address)
  const Engine = loadDockerode()
  // A kept-alive connection that a restarted engine has closed would fail the next call for no reason.
  const agent = Object.assign(
    open.follow(
      options.protocol === 'https'
        ? new HttpsAgent({ keepAlive: false })
        : new HttpAgent({ keepAlive: false })
    ),
    briefly
  )
  // Said although none is kept: of a request that asks to close, the engine leaves the body unread, and then it does
  // not notice that its client has hung up.
  const headers = { Connection: 'keep-alive' }
  const prompt = { ...options, agent, headers, timeout: silenceMs }
  const connection = {
    address: address.text,
    options,
    prompt: new Engine(prompt),
    patient: new Engine({ ...prompt, timeout: 0 })
  }
  readWholeAnswers(connection.prompt)
  readWholeAnswers(connection.patient)
  return connection
}
