import { type Clock, type Log, Serial } from 'busbar/sdk'
import type { EngineClient } from '../engine-client.js'
import type { GroupKeeper } from './group-keeper.js'
import { type ToolsKind, withHostTools } from './host-tools.js'
import { endScript, lookScript, orphansAmong, readProcesses } from './orphaned-processes.js'

interface OrphanEnderParts {
  readonly engine: EngineClient
  readonly instanceId: string
  readonly groups: Pick<GroupKeeper, 'groupOfAll'>
  readonly clock: Pick<Clock, 'now'>
  readonly log: Log
}

/** All processes of the machine, and leave to end those of other users. */
const processTools: ToolsKind = {
  purpose: 'for processes',
  label: 'busbar-system=process-tools',
  lifeSeconds: 30,
  files: [],
  host: { NetworkMode: 'none', PidMode: 'host', CapAdd: ['KILL'] },
  // What holds a container for the engine is confined by nothing, and takes no signals from what is.
  isUnconfined: true
}

/** Ends the processes of this installation's containers that are the engine's no more, see `orphansAmong`. */
export class OrphanEnder {
  readonly #turns = new Serial()

  constructor(private readonly parts: OrphanEnderParts) {}

  /** Of these containers, and of own ones that are not there any more, what began before `before`. */
  async end(resting: ReadonlySet<string>, before: Date): Promise<void> {
    await this.#turns.run(async () => {
      const { engine, instanceId, groups, clock, log } = this.parts
      const group = await groups.groupOfAll()
      await withHostTools(
        engine,
        instanceId,
        async tools => {
          const seen = readProcesses((await tools.run(['sh', '-c', lookScript])).output)
          const orphans = orphansAmong(seen, { group, resting, onEngine: await this.#onEngine() })
          if (orphans.length === 0) return
          const age = String(Math.max(0, Math.ceil((clock.now().getTime() - before.getTime()) / 1000)))
          const lines = orphans.map(({ pid, containerId }) => `${pid} ${containerId}\n`).join('')
          const { output } = await tools.run(['sh', '-c', endScript, 'sh', age], lines)
          if (output !== '')
            log.warn(
              { ended: output.trim().split('\n') },
              'processes that a killed engine had left were ended'
            )
        },
        processTools
      )
    })
  }

  async #onEngine(): Promise<ReadonlyMap<string, boolean>> {
    const { engine } = this.parts
    const list = async (all: boolean) =>
      await engine.call('list containers', async docker => await docker.listContainers({ all }))
    // Which of them run is asked last.
    const [all, running] = [await list(true), await list(false)]
    return new Map([
      ...all.map(({ Id: id }) => [id, false] as const),
      ...running.map(({ Id: id }) => [id, true] as const)
    ])
  }
}
