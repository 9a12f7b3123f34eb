import type { BackupWork, Dump, DumpOptions } from 'busbar/api/backups'
import { problems } from '../problems.js'
import { ended, type SideServer } from '../servers/side-servers.js'
import { choiceOf, isRunning, type RunKit } from './run-kit.js'

/** Dumps databases, and puts them back where that was cut off. */
export class DumpRunner {
  constructor(private readonly kit: RunKit) {}

  async dump(id: string, { databases }: DumpOptions, { signal, say }: BackupWork): Promise<Dump> {
    const kit = this.kit
    const { board, db, servers } = kit.parts
    const { runtime, side, files } = kit.tools()
    await kit.readable(id)
    const row = await db.transaction(
      async tx =>
        await board.begin(
          id,
          { task: 'backup', status: 'backing_up', from: ['running', 'stopped'], detail: 'a backup is made' },
          {},
          tx
        )
    )
    const serving: SideServer = { containerId: row.container_id ?? '', row }
    const { engine } = await servers.engineOf(row)
    if (engine.dump === null) return await files.dump(serving, { say, signal })
    const choice = choiceOf(databases)
    if (!(await isRunning(runtime, serving.containerId)))
      throw problems.notRunning({ status: row.status_before ?? 'stopped' })
    if (choice.kind === 'only') await side.assertThere(serving, choice.names, signal)
    const program = await side.dump(serving, choice, signal)
    return {
      format: engine.dump.format,
      content: program.output,
      end: async () => {
        await ended(program, 'the dump', row, servers)
        return { rows: null }
      }
    }
  }

  async settle(id: string, signal: AbortSignal): Promise<void> {
    const kit = this.kit
    const { store, board, provisioner } = kit.parts
    const row = await store.find(id)
    if (row?.task !== 'backup') return
    const { runtime, side } = kit.tools()
    await side.closeAll(row)
    await runtime.endVolumeCalls(row.volume)
    const before = row.status_before ?? 'running'
    const failure = await kit.failureOf(row, signal, async () => {
      if (before === 'running') await provisioner.provision(row, signal)
      else await kit.stopServing(runtime, row)
    })
    await board.end(
      id,
      'backup',
      failure === null ? before : 'failed',
      failure === null ? {} : { status_detail: failure }
    )
  }
}
