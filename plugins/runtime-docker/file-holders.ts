import { Readable } from 'node:stream'
import type { ContainerFile, Owner } from 'busbar/api/containers'
import type { Clock, Log } from 'busbar/sdk'
import type Docker from 'dockerode'
import type { EngineClient } from './engine-client.js'
import { fromEmptyImage, removeEmptyImage } from './host/host-tools.js'
import { ToolLeftovers } from './host/tool-leftovers.js'
import type { Identity } from './identity.js'
import {
  fileHolderSystem,
  filesLabel,
  imageInstanceLabel,
  instanceLabel,
  isAmong,
  ownerFilter,
  systemLabel
} from './labels.js'

interface FileHoldersParts {
  readonly engine: EngineClient
  readonly instanceId: string
  readonly identity: Identity
  readonly clock: Pick<Clock, 'now'>
  readonly log: Log
}

/** Files on the engine's machine, and what keeps them there. */
export interface HeldFiles {
  readonly holder: string
  /** `source`: a path of the engine's machine. */
  readonly mounts: ReadonlyArray<{ readonly source: string; readonly path: string }>
}

const label = `${systemLabel}=${fileHolderSystem}`
const folder = '/files'
const kind = { purpose: 'that holds files', label, lifeSeconds: 60 }
/** The engine copies what an image has at the place of a new volume while it makes a container. */
const createSeconds = 900

/**
 * Files that one container has mounted, each at a path of its own. An engine mounts a single file only from a path of its machine,
 * on which the platform may have none; so it is put into a volume without a name, of a container that never starts, and mounted
 * from there. The volume is nobody else's, goes with that container, and is whole before the other one is made.
 */
export class FileHolders {
  /** Of which this process makes the other container now. */
  readonly #making = new Set<string>()

  constructor(private readonly parts: FileHoldersParts) {}

  /** `create` makes the container that has them mounted; without it, they are not kept. */
  async around<T>(
    owner: Owner,
    files: readonly ContainerFile[],
    create: (held: HeldFiles | undefined) => Promise<T>
  ): Promise<T> {
    if (files.length === 0) return await create(undefined)
    const { id, source } = await this.#hold(owner)
    try {
      await this.#fill(id, files)
      const mounts = files.map(({ path }, at) => ({ source: `${source}/${at}`, path }))
      return await create({ holder: id, mounts })
    } catch (error) {
      await this.#remove(id).catch((left: unknown) => {
        this.parts.log.warn({ err: left }, 'files of a container that was not made stay for now')
      })
      throw error
    } finally {
      this.#making.delete(id)
    }
  }

  /** Those of a container that has gone. What cannot be removed now is found by `removeLeft`. */
  async removeOf({
    Id: containerId,
    Config: { Labels: labels }
  }: Docker.ContainerInspectInfo): Promise<void> {
    const holder = labels?.[filesLabel]
    if (!holder) return
    try {
      if ((await this.#inspect(holder)) !== undefined) await this.#remove(holder)
    } catch (error) {
      this.parts.log.warn({ err: error, containerId }, 'the files of a container that is gone stay for now')
    }
  }

  /** Those that no container has mounted: its platform was killed in between, or somebody has removed it by hand. */
  async removeLeft(owner: Owner = {}, olderThanSeconds = createSeconds): Promise<void> {
    const { engine, instanceId, clock } = this.parts
    const list = async (filters: readonly string[]): Promise<Docker.ContainerInfo[]> =>
      await engine.call(
        'list containers',
        async docker => await docker.listContainers({ all: true, filters: { label: [...filters] } })
      )
    const holders = await list([`${imageInstanceLabel}=${instanceId}`, label, ...ownerFilter(owner)])
    if (holders.length > 0) {
      // Listed after them: whoever has one mounted by now is among these.
      const users = await list([`${instanceLabel}=${instanceId}`, filesLabel])
      const used = new Set(users.map(({ Labels: labels }) => labels[filesLabel]))
      const youngest = clock.now().getTime() / 1000 - olderThanSeconds
      for (const { Id: id, Created: created } of holders) {
        if (used.has(id) || this.#making.has(id) || created > youngest) continue
        if (isAmong(owner, await this.#inspect(id))) await this.#remove(id)
      }
    }
    await new ToolLeftovers(engine, instanceId, kind).removeImages()
  }

  async #hold(owner: Owner): Promise<{ readonly id: string; readonly source: string }> {
    const { engine, instanceId, identity } = this.parts
    const { labels, mark } = identity.ofHolder(owner)
    const { image, made } = await fromEmptyImage(
      engine,
      { instanceId, label },
      async image =>
        await engine.call('create a container that holds files', async docker => {
          const { id } = await docker.createContainer({
            Image: image,
            Cmd: ['never-started'],
            Labels: labels,
            HostConfig: {
              ContainerIDFile: mark,
              NetworkMode: 'none',
              Mounts: [{ Type: 'volume', Source: '', Target: folder }]
            }
          })
          this.#making.add(id)
          return id
        })
    )
    await removeEmptyImage(engine, image)
    const seen = await engine.call(
      'inspect a container',
      async docker => await docker.getContainer(made).inspect()
    )
    const source = seen.Mounts.find(({ Destination: target }) => target === folder)?.Source
    if (source === undefined) throw new Error('the engine does not say where a volume of its is')
    return { id: made, source }
  }

  async #fill(holder: string, files: readonly ContainerFile[]): Promise<void> {
    const { pack } = await import('tar-stream')
    const tar = pack()
    for (const [at, { content, mode }] of files.entries())
      tar.entry(
        { name: String(at), mode: mode & 0o777, uid: 0, gid: 0, mtime: this.parts.clock.now() },
        content
      )
    tar.finalize()
    await this.parts.engine.call('put files into a volume', async docker => {
      await docker.getContainer(holder).putArchive(Readable.from(tar), { path: folder })
    })
  }

  /** Whose it is; undefined where it is gone, or none of this installation. */
  async #inspect(holder: string): Promise<Owner | undefined> {
    const seen = await this.parts.engine.call(
      'inspect a container',
      async docker => await docker.getContainer(holder).inspect(),
      { absent: [404] }
    )
    return seen?.Config.Labels[systemLabel] === fileHolderSystem
      ? this.parts.identity.holder(seen)
      : undefined
  }

  async #remove(holder: string): Promise<void> {
    await this.parts.engine.call(
      'remove a container that holds files',
      async docker => {
        await docker.getContainer(holder).remove({ v: true })
      },
      { absent: [404, 409], patient: true }
    )
  }
}
