import { posix } from 'node:path'
import type { Readable } from 'node:stream'
import type { CheckFacts, Dump } from 'busbar/api/backups'
import type { ContainerRuntime } from 'busbar/api/containers'
import type { DatabaseRow } from './database-row.js'
import { removeNamed } from './provisioner.js'
import { type ServerContainer, stopGraceSeconds } from './server-container.js'
import { type SideServer, sideName } from './side-servers.js'

interface Context {
  readonly say: (message: string) => void
  readonly signal: AbortSignal
}

/** Where a command of the user's puts a backup, and finds it. */
const commandFolder = '/tmp/busbar-backup'
const idle = ['sh', '-c', 'trap "exit 0" TERM; sleep 2147483647 & wait'] as const

/** How the content of a database without dumps is written: its files, or what a command has made. */
export const filesFormat = ({ backup_mode: mode }: Pick<DatabaseRow, 'backup_mode'>): string =>
  mode === 'command' ? 'command-tar' : 'tar'

/** Databases whose data is files: they are packed while nothing writes to them, or by a command that the user has given. */
export class FileServers {
  constructor(
    private readonly runtime: ContainerRuntime,
    private readonly servers: ServerContainer
  ) {}

  async dump({ containerId, row }: SideServer, { say, signal }: Context): Promise<Dump> {
    const format = filesFormat(row)
    if (row.backup_mode === 'command') {
      await this.#command(containerId, row, row.backup_command ?? '', signal, true)
      const content = await this.runtime.getFiles(containerId, commandFolder, { signal })
      return { format, content, end: async () => ({ rows: null }) }
    }
    say('stopping the server: its files are packed while nothing writes to them')
    await this.runtime.stop(containerId, stopGraceSeconds)
    const helper = await this.#helper(row, 'source', row.volume)
    const content = await this.runtime.getFiles(helper, await this.#path(row), { signal })
    // It fails where its end is missing.
    return { format, content, end: async () => ({ rows: null }) }
  }

  /** Into a new volume. */
  async restore(
    row: DatabaseRow,
    { volume, imageName }: { readonly volume: string; readonly imageName: string },
    content: Readable,
    { say, signal }: Context
  ): Promise<void> {
    const { runtime } = this
    await runtime.ensureVolume(volume, { projectId: row.project_id, databaseId: row.id })
    say('restoring into a volume beside the present one')
    if (row.backup_mode === 'command') {
      const network = await runtime.ensureBuildNetwork(row.project_id)
      await removeNamed(runtime, row, sideName(row, 'next'))
      const containerId = await this.servers.create(runtime, row, {
        name: sideName(row, 'next'),
        network,
        imageName,
        volume,
        isEmpty: true
      })
      await runtime.start(containerId)
      await this.servers.untilReady(runtime, row, containerId, signal)
      await runtime.putFiles(containerId, posix.dirname(commandFolder), content, { signal })
      await this.#command(containerId, row, row.restore_command ?? '', signal, false)
      return
    }
    const helper = await this.#helper({ ...row, image_name: imageName }, 'next', volume)
    await runtime.putFiles(helper, posix.dirname(await this.#path(row)), content, { signal })
  }

  /** What is packed is read to its end: how many files there are is not known without unpacking them. */
  async countOf(content: Readable): Promise<CheckFacts> {
    let bytes = 0
    for await (const piece of content as AsyncIterable<Buffer>) bytes += piece.length
    return { rows: 0, detail: `${bytes} bytes of files, which were read and not started` }
  }

  async close(row: DatabaseRow): Promise<void> {
    for (const role of ['next', 'source'] as const) await removeNamed(this.runtime, row, sideName(row, role))
  }

  async #path(row: DatabaseRow): Promise<string> {
    const { engine, database } = await this.servers.engineOf(row)
    return engine.dataPath(database)
  }

  /** A container of the same image with the volume, in which nothing runs. */
  async #helper(row: DatabaseRow, role: 'source' | 'next', volume: string): Promise<string> {
    const { runtime } = this
    await removeNamed(runtime, row, sideName(row, role))
    const id = await runtime.create({
      name: sideName(row, role),
      image: row.image_name ?? '',
      owner: { projectId: row.project_id, databaseId: row.id },
      network: await runtime.ensureBuildNetwork(row.project_id),
      env: {},
      entrypoint: idle,
      cpuLimit: 0,
      memoryLimit: 0,
      caps: 'standard',
      readonlyRootfs: false,
      restarts: false,
      volumes: [{ volume, path: await this.#path(row) }]
    })
    await runtime.start(id)
    return id
  }

  /** As the user wrote it, by a shell of their own container. */
  async #command(
    containerId: string,
    row: DatabaseRow,
    text: string,
    signal: AbortSignal,
    isBackup: boolean
  ): Promise<void> {
    const errors: string[] = []
    const prepared = isBackup ? `rm -rf ${commandFolder} && mkdir -p ${commandFolder} && ` : ''
    const exitCode = await this.runtime.exec(
      containerId,
      ['sh', '-c', `${prepared}exec sh -c "$BUSBAR_COMMAND"`],
      {
        env: { BUSBAR_BACKUP_DIR: commandFolder, BUSBAR_COMMAND: text },
        signal,
        onLine: ({ text: line }) => {
          if (errors.push(line) > 5) errors.shift()
        }
      }
    )
    if (exitCode !== 0)
      throw new Error(
        `the ${isBackup ? 'backup' : 'restore'} command ended with ${exitCode}: ${this.servers.clean(row, errors.join('\n'))}`
      )
  }
}
