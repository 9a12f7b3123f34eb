import { posix } from 'node:path'
import type { Readable } from 'node:stream'
import type { Dump } from 'busbar/api/backups'
import type { ContainerRuntime } from 'busbar/api/containers'
import { checkedTar } from 'busbar/sdk/tar'
import type { DatabaseRow } from '../records/database-row.js'
import { sideName } from '../records/slug.js'
import { filesFormat } from './file-formats.js'
import { removeNamed } from './provisioner.js'
import { type ServerContainer, stopGraceSeconds } from './server-container.js'
import type { SideServer } from './side-servers.js'

interface Context {
  readonly say: (message: string) => void
  readonly signal: AbortSignal
}

/** Where a command of the user's puts a backup, and finds it. */
const commandFolder = '/tmp/busbar-backup'

/** Where files go: a volume that nothing else has, and what the server beside it is called that a command needs. */
interface FilesWish {
  readonly role: 'next' | 'check'
  readonly volume: string
  readonly imageName: string
}

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
      const files = await this.runtime.getFiles(containerId, commandFolder, { signal })
      return dumpOf(format, checkedTar(files, posix.basename(commandFolder)))
    }
    say('stopping the server: its files are packed while nothing writes to them')
    await this.runtime.stop(containerId, stopGraceSeconds)
    return dumpOf(format, checkedTar(await this.runtime.readVolume(row.volume, { signal })))
  }

  /** Into a new volume. */
  async restore(
    row: DatabaseRow,
    { role, volume, imageName }: FilesWish,
    content: Readable,
    { say, signal }: Context
  ): Promise<void> {
    const { runtime } = this
    await runtime.ensureVolume(volume, { projectId: row.project_id, databaseId: row.id })
    say('restoring into a volume of its own')
    if (row.backup_mode !== 'command') {
      await runtime.fillVolume(volume, checkedTar(content).content, { signal })
      return
    }
    const network = await runtime.ensureBuildNetwork(row.project_id)
    const name = sideName(row, role)
    await removeNamed(runtime, row, name)
    const containerId = await this.servers.create(runtime, row, {
      name,
      network,
      imageName,
      volume,
      isEmpty: true
    })
    await runtime.start(containerId)
    await this.servers.untilReady(runtime, row, containerId, signal)
    const { dir, base } = posix.parse(commandFolder)
    await runtime.putFiles(containerId, dir, checkedTar(content, base).content, { signal })
    await this.#command(containerId, row, row.restore_command ?? '', signal, false)
    await removeNamed(runtime, row, name)
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

/** What a restore would refuse is no backup. */
const dumpOf = (format: string, { content, check }: ReturnType<typeof checkedTar>): Dump => ({
  format,
  content,
  end: async () => {
    if (!check.isWhole) throw new Error('the archive of its files is not whole')
    return { rows: null }
  }
})
