import { randomInt } from 'node:crypto'
import { IncomingMessage } from 'node:http'
import type Docker from 'dockerode'
import type { EngineClient } from './engine-client.js'
import { type Labels, unexpectedLabel } from './labels.js'
import { type MislabelledStep, mislabelledStep } from './mislabelled-steps.js'
import { asReadable, jsonLines } from './output-lines.js'

/**
 * By these the containers of one build are known from all others. They are in the host configuration, of which
 * nothing comes from a Dockerfile or an image.
 */
export interface StepCaps {
  readonly memory: number
  readonly memswap: number
  readonly cpuperiod: number
  readonly cpuquota: number
  /** Of /dev/shm, in bytes: another one in each build. */
  readonly shmsize: number
}

const usualSharedBytes = 64 * 2 ** 20

/** The usual size and a few bytes more, for one build alone. */
export const markedSharedBytes = (): number => usualSharedBytes + randomInt(1, 2 ** 24)

/**
 * Caps the processes of every step of a build, so that one that forks for ever cannot take those of the
 * machine. The engine's builder has no option for it, so each container that it makes is given the cap at once:
 * most often before its program begins, else while it runs. The engine's events tell of them, for the output
 * of a build can be forged.
 *
 * The same look at each container tells a step that would pass for another owner's, or for one without an owner: `onMislabelled` gets
 * it. Ends with `signal`. Resolves when no container is missed any more, with what the engine says that the time is.
 */
export async function guardSteps(
  engine: EngineClient,
  { onRefusal, ...options }: GuardOptions & { readonly onRefusal: (reason: string) => void }
): Promise<Date | undefined> {
  const { signal } = options
  const filters = { type: ['container' as const], event: ['create', 'start'] }
  const task = 'send its events'
  const answer = await engine.call(
    task,
    async docker => await docker.getEvents({ filters, abortSignal: signal }),
    { patient: true }
  )
  const events = asReadable(answer)
  const guard = new StepGuard(engine, options)
  const follow = async (): Promise<void> => {
    for await (const { Action: action, Actor: actor } of engine.reading(task, jsonLines(events))) {
      const id = typeof actor === 'object' && actor !== null && 'ID' in actor ? actor.ID : undefined
      if (typeof id === 'string')
        void (action === 'start' ? guard.started(id) : guard.created(id)).catch(refuse)
    }
    throw new Error('the engine tells no more of its containers')
  }
  const refuse = (error: unknown): void => {
    if (!signal.aborted) onRefusal(error instanceof Error ? error.message : String(error))
  }
  follow().catch(refuse)
  return saidAt(answer)
}

/** Every engine says it with each answer. */
function saidAt(answer: NodeJS.ReadableStream): Date | undefined {
  const said = answer instanceof IncomingMessage ? Date.parse(answer.headers.date ?? '') : Number.NaN
  return Number.isNaN(said) ? undefined : new Date(said)
}

interface GuardOptions {
  readonly caps: StepCaps
  readonly processes: number
  /** What a step has of labels of ours, once it has any. */
  readonly labels: Labels
  readonly onMislabelled: (step: MislabelledStep) => void
  readonly signal: AbortSignal
}

class StepGuard {
  /** Steps that look as if they ran nothing. */
  readonly #idle = new Map<string, Promise<boolean>>()

  constructor(
    private readonly engine: EngineClient,
    private readonly options: GuardOptions
  ) {}

  async created(id: string): Promise<void> {
    const looking = this.#capUnlessIdle(id)
    this.#idle.set(id, looking)
    await looking
  }

  /** A command can be written so that it looks like none. */
  async started(id: string): Promise<void> {
    const isIdle = await this.#idle.get(id)
    this.#idle.delete(id)
    if (isIdle === true) await this.#cap(id)
  }

  /** True when it was left as it is: most steps only note something, and to cap those as well would slow every build down. */
  async #capUnlessIdle(id: string): Promise<boolean> {
    const seen = await this.engine.call(
      'look at a step of a build',
      async docker => await docker.getContainer(id).inspect(),
      { absent: [404] }
    )
    if (seen === undefined || !isStep(seen, this.options.caps)) return false
    const unexpected = unexpectedLabel((seen.Config.Labels as Labels | null) ?? {}, this.options.labels)
    if (unexpected !== undefined) this.options.onMislabelled(mislabelledStep(unexpected, seen))
    if (isNote(seen)) return true
    await this.#cap(id)
    return false
  }

  async #cap(id: string): Promise<void> {
    await this.engine.call(
      'limit the processes of a build',
      async docker => {
        await docker.getContainer(id).update({ PidsLimit: this.options.processes })
      },
      // A step that has ended already needs none.
      { absent: [404, 409] }
    )
  }
}

/** How the engine writes down a step such as ENV or CMD, for which it makes a container that it never starts. */
const isNote = ({ Config: { Cmd: command } }: Docker.ContainerInspectInfo): boolean =>
  command?.some(word => word.startsWith('#(nop) ')) === true

export const isStep = ({ HostConfig: host }: Docker.ContainerInspectInfo, caps: StepCaps): boolean =>
  host.ShmSize === caps.shmsize &&
  host.Memory === caps.memory &&
  host.MemorySwap === caps.memswap &&
  host.CpuPeriod === caps.cpuperiod &&
  host.CpuQuota === caps.cpuquota
