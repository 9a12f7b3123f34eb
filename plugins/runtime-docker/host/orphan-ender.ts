import { type Clock, type Log, Serial } from 'busbar/sdk'
import type { EngineClient } from '../engine-client.js'
import type { GroupKeeper } from './group-keeper.js'
import { type ToolsKind, withHostTools } from './host-tools.js'
import { type ContainerProcess, endScript, lookScript, readProcesses } from './orphaned-processes.js'

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

const idOf = ({ containerId }: ContainerProcess): string => containerId

/** Ends the processes of this installation's containers that are the engine's no more, see `ContainerProcess`. */
export class OrphanEnder {
  readonly #turns = new Serial()

  constructor(private readonly parts: OrphanEnderParts) {}

  /** Of these containers and of those that are not there any more, whatever does not run and began before `before`. */
  async end(containerIds: ReadonlySet<string>, before: Date): Promise<void> {
    await this.#turns.run(async () => {
      const { engine, instanceId, groups, clock, log } = this.parts
      const all = await groups.groupOfAll()
      const isOurs = ({ group }: ContainerProcess): boolean =>
        all !== undefined && group?.includes(`/${all}/`) === true
      await withHostTools(
        engine,
        instanceId,
        async tools => {
          const processes = readProcesses((await tools.run(['sh', '-c', lookScript])).output)
          const ours = new Set([...containerIds, ...processes.filter(isOurs).map(idOf)])
          const running = await this.#running()
          const orphans = processes.filter(seen => ours.has(idOf(seen)) && !running.has(idOf(seen)))
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

  /** Asked after the look: what has been started since is in none of its rows. */
  async #running(): Promise<ReadonlySet<string>> {
    const { engine } = this.parts
    const listed = await engine.call('list containers', async docker => await docker.listContainers())
    return new Set(listed.map(({ Id: id }) => id))
  }
}
