import { bounded, isProblem, type Log } from 'busbar/sdk'
import type { EngineClient } from '../engine-client.js'
import { type ToolsKind, withHostTools } from '../host/host-tools.js'
import { removeTools } from '../host/tool-leftovers.js'
import { holderSystem, imageInstanceLabel, systemLabel } from '../labels.js'
import { emptyingCommand } from './emptying-script.js'
import { FairSlots } from './fair-slots.js'

interface EmptierParts {
  readonly engine: EngineClient
  readonly instanceId: string
  readonly log: Log
}

/**
 * What became of it: `used` by a container, and so left alone; `unfinished` where there was not time enough, or the engine went away;
 * `impossible` where the machine has no programs for it, or its disk has no room for a container.
 */
type Emptying = 'empty' | 'used' | 'unfinished' | 'impossible'

/** What is left by then goes when it is tried again. */
export const longestSeconds = 600
/** Of volumes that somebody waits for, and as many of those that are left: an owner may leave some in each of many projects. */
const atOnce = 2
const limit = { ms: longestSeconds * 1000 }
const system = 'volume-tools'

/** As many cores as one; of the machine it sees its programs, and nothing that it could change. */
const emptyingTools = (slot: number, volumes: readonly string[]): ToolsKind => ({
  purpose: 'that empties volumes',
  // What another has just made does not look like what was left.
  label: `${systemLabel}=${system}-${slot}`,
  lifeSeconds: longestSeconds,
  isSilent: true,
  files: [],
  volumes: volumes.map((source, at) => ({ source, target: targetOf(at) })),
  // Files have any owner, and folders any rights.
  host: { NetworkMode: 'none', CapAdd: ['DAC_OVERRIDE', 'FOWNER'], NanoCpus: 1e9 }
})

const targetOf = (at: number): string => `/busbar-volumes/${at}`

/**
 * Empties volumes before the engine is told to remove them: it does so under a lock for all of them, so that with millions
 * of files no other one could be made meanwhile, and no container. The programs are the machine's own: those of an image may do
 * as they like.
 */
export class VolumeEmptier {
  readonly #awaited = new FairSlots(atOnce)
  readonly #left = new FairSlots(atOnce)
  /** Containers of this process. */
  readonly #own = new Set<string>()

  constructor(private readonly parts: EmptierParts) {}

  /** `owner`: whose turn it takes. `isLeft`: nobody waits for it. Ends early, unfinished, when `signal` aborts. */
  async empty(
    volumes: readonly string[],
    owner: string,
    { isLeft = false, signal }: { readonly isLeft?: boolean; readonly signal?: AbortSignal } = {}
  ): Promise<Emptying> {
    return await (isLeft ? this.#left : this.#awaited).run(owner, async slot => {
      if (signal?.aborted === true) return 'unfinished'
      const kind = emptyingTools(isLeft ? atOnce + slot : slot, volumes)
      // A container that could not be made may have come to grief by chance.
      for (let attempt = 1; ; attempt++) {
        if (await this.#isUsed(volumes)) return 'used'
        const outcome = await this.#run(kind, signal)
        if (outcome !== 'impossible') return outcome
        if (attempt < 2) continue
        this.parts.log.warn(
          { volumes },
          'volumes go as they are, which keeps the Docker Engine from others while it removes many files: its machine has no programs that empty them, or its disk has no room'
        )
        return outcome
      }
    })
  }

  async #run(kind: ToolsKind, signal: AbortSignal | undefined): Promise<Emptying> {
    const { engine, instanceId, log } = this.parts
    let container: string | undefined
    try {
      const { code, errors } = await withHostTools(
        engine,
        instanceId,
        async (tools, id) => {
          container = id
          this.#own.add(id)
          const folders = (kind.volumes ?? []).map(({ target }) => target)
          const what = 'a container that empties volumes'
          return await bounded(async () => await tools.run(emptyingCommand(folders)), {
            ...limit,
            signal,
            what
          })
        },
        kind
      )
      if (code === 0) return 'empty'
      log.warn({ code, reason: errors.slice(0, 500) }, 'volumes could not be emptied')
      return code === 126 || code === 127 ? 'impossible' : 'unfinished'
    } catch (error) {
      log.debug({ err: error }, 'volumes are not empty yet')
      const isAway = isProblem(error) && error.code === 'E_ENGINE_UNREACHABLE'
      return container === undefined && !isAway ? 'impossible' : 'unfinished'
    } finally {
      if (container !== undefined) this.#own.delete(container)
    }
  }

  /** By a container that is not there for their removal. What another process was emptying them with when it was killed goes. */
  async #isUsed(volumes: readonly string[]): Promise<boolean> {
    const { engine, instanceId } = this.parts
    const users = await engine.call(
      'list containers',
      async docker => await docker.listContainers({ all: true, filters: { volume: [...volumes] } })
    )
    let isUsed = false
    for (const { Id: id, Labels: labels } of users) {
      const what = labels[imageInstanceLabel] === instanceId ? (labels[systemLabel] ?? '') : ''
      if (what === holderSystem) continue
      if (!what.startsWith(`${system}-`)) isUsed = true
      else if (!this.#own.has(id)) await removeTools(engine, id, { purpose: 'that was emptying volumes' })
    }
    return isUsed
  }
}
