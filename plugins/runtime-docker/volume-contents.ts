import { dirname } from 'node:path'
import type { Readable } from 'node:stream'
import type { Owner } from 'busbar/api/containers'
import type { Clock } from 'busbar/sdk'
import type Docker from 'dockerode'
import { short } from './container-access.js'
import { untilItsEnd } from './container-files.js'
import type { EngineClient } from './engine-client.js'
import { fromEmptyImage, removeEmptyImage, type ToolsKind, withHostTools } from './host/host-tools.js'
import { removeTools, ToolLeftovers } from './host/tool-leftovers.js'
import type { Identity } from './identity.js'
import { imageInstanceLabel, systemLabel } from './labels.js'
import { asReadable } from './output-lines.js'
import { problems } from './problems.js'
import { exchangeCommand } from './volume-exchange.js'
import { checked } from './volume-name.js'

interface ContentsParts {
  readonly engine: EngineClient
  readonly clock: Pick<Clock, 'sleep'>
  readonly instanceId: string
  readonly identity: Identity
}
type Options = { readonly signal: AbortSignal }

const contentSystem = 'volume-content'
const exchangeSystem = 'volume-exchange'
const content = {
  purpose: 'for the files of a volume',
  label: `${systemLabel}=${contentSystem}`,
  lifeSeconds: 60
}
const folder = '/volume'
const goneMs = 50
const longestMs = 10_000
const exchangeSeconds = 60

/** Sees the volumes of the engine as its machine has them, so that to move a folder is one step. */
const exchangeTools = (volumes: string): ToolsKind => ({
  purpose: 'that exchanges volumes',
  label: `${systemLabel}=${exchangeSystem}`,
  lifeSeconds: exchangeSeconds,
  files: [],
  writable: [{ source: volumes, target: '/busbar-volumes' }],
  host: { NetworkMode: 'none', CapAdd: ['DAC_OVERRIDE', 'FOWNER'] }
})

/** What is in named volumes, as a tar: by way of a container that never starts, so that no program of anybody sees it. */
export class VolumeContents {
  constructor(private readonly parts: ContentsParts) {}

  async read(name: string, { signal }: Options): Promise<Readable> {
    const holder = await this.#hold(name, { readOnly: true })
    const remove = async (): Promise<void> => await this.#remove(holder).catch(() => {})
    try {
      signal.throwIfAborted()
      const answer = await this.parts.engine.call(
        `read the volume ${name}`,
        async docker =>
          asReadable(await docker.getContainer(holder).getArchive({ path: folder, abortSignal: signal })),
        { patient: true }
      )
      const cut = problems.filesCut({ container: name, path: folder })
      const whole = untilItsEnd(answer, cut, signal)
      whole.once('close', () => void remove())
      return whole
    } catch (error) {
      await remove()
      signal.throwIfAborted()
      throw error
    }
  }

  async fill(name: string, tar: Readable, { signal }: Options): Promise<void> {
    let tarError: unknown
    tar.once('error', error => {
      tarError = error
    })
    const holder = await this.#hold(name, { readOnly: false })
    try {
      await this.parts.engine.call(
        `unpack files in the volume ${name}`,
        async docker => {
          if (tarError !== undefined) throw tarError
          signal.throwIfAborted()
          // From its root: an engine refuses links that lead out of where it unpacks, as some in a volume rightly do.
          await docker.getContainer(holder).putArchive(tar, { path: '/', abortSignal: signal })
        },
        {
          patient: true,
          explain: ({ statusCode, words }) =>
            statusCode === 400 ||
            /archive\/tar|unexpected EOF|invalid tar|breakout|not a directory/i.test(words)
              ? problems.filesRefused({ container: name, path: folder, reason: words })
              : undefined
        }
      )
    } catch (error) {
      signal.throwIfAborted()
      throw tarError ?? error
    } finally {
      tar.destroy()
      await this.#remove(holder).catch(() => {})
    }
  }

  /** See `ContainerRuntime.exchangeVolumes`. */
  async exchange(name: string, other: string, isResumed: boolean): Promise<void> {
    const { engine, instanceId } = this.parts
    for (const volume of [name, other]) await this.#refuseUsed(volume)
    await this.release(name)
    await this.release(other)
    const [folders, otherFolders] = [await this.#folderOf(name), await this.#folderOf(other)]
    if (folders !== otherFolders) throw problems.volumesApart({ volume: name, other })
    await this.#endExchanges()
    const command = exchangeCommand({ volumes: '/busbar-volumes', name, other, isResumed })
    const { code, errors } = await withHostTools(
      engine,
      instanceId,
      async tools => await tools.run(command),
      exchangeTools(folders)
    )
    if (code !== 0)
      throw problems.exchangeFailed({ volume: name, reason: errors.slice(0, 500) || `exit code ${code}` })
  }

  /** What a call before has left behind ends; a volume that is removed has no use for it either. */
  async release(name: string): Promise<void> {
    for (const { Id: id, Labels: labels } of await this.#containersWith(name))
      if (labels[imageInstanceLabel] === this.parts.instanceId && labels[systemLabel] === contentSystem)
        await this.#remove(id)
  }

  async #hold(name: string, { readOnly }: { readonly readOnly: boolean }): Promise<string> {
    const { engine, instanceId, identity } = this.parts
    const owner = await this.#ownerOf(name)
    await this.release(name)
    await new ToolLeftovers(engine, instanceId, content).removeImages()
    const { labels, mark } = identity.ofHolder(owner)
    const { image, made } = await fromEmptyImage(
      engine,
      { instanceId, label: content.label },
      async image =>
        await engine.call('create a container for the files of a volume', async docker => {
          const { id } = await docker.createContainer({
            Image: image,
            Cmd: ['never-started'],
            Labels: labels,
            HostConfig: {
              ContainerIDFile: mark,
              NetworkMode: 'none',
              Mounts: [{ Type: 'volume', Source: name, Target: folder, ReadOnly: readOnly }]
            }
          })
          return id
        })
    )
    await removeEmptyImage(engine, image)
    return made
  }

  async #ownerOf(name: string): Promise<Owner> {
    const owner = this.parts.identity.volume(await this.#inspect(name))
    if (owner === undefined) throw problems.volumeForeign({ volume: name })
    return owner
  }

  /** Where the engine has its volumes: `/var/lib/docker/volumes`. */
  async #folderOf(name: string): Promise<string> {
    return dirname(dirname((await this.#inspect(name)).Mountpoint))
  }

  async #inspect(name: string): Promise<Docker.VolumeInspectInfo> {
    const seen = await this.parts.engine.call(
      `inspect the volume ${name}`,
      async docker => await docker.getVolume(checked(name)).inspect(),
      { absent: [404] }
    )
    if (seen === undefined) throw problems.volumeMissing({ volume: name })
    return seen
  }

  async #refuseUsed(name: string): Promise<void> {
    for (const { Id: id, State: state } of await this.#containersWith(name))
      if (['running', 'paused', 'restarting'].includes(state) && (await this.#runs(id)))
        throw problems.volumeInUse({ volume: name, reason: 'a container that has it runs' })
  }

  /** The engine's list may be of the moment before a stop that it has answered already. */
  async #runs(id: string): Promise<boolean> {
    const seen = await this.parts.engine.call(
      'inspect a container that has a volume',
      async docker => await docker.getContainer(id).inspect(),
      { absent: [404] }
    )
    return seen?.State.Running === true
  }

  async #containersWith(name: string): Promise<Docker.ContainerInfo[]> {
    return await this.parts.engine.call(
      'list containers',
      async docker => await docker.listContainers({ all: true, filters: { volume: [checked(name)] } })
    )
  }

  /** One of a platform that was killed may be at work still. */
  async #endExchanges(): Promise<void> {
    const { engine, instanceId } = this.parts
    const label = [`${imageInstanceLabel}=${instanceId}`, `${systemLabel}=${exchangeSystem}`]
    const left = await engine.call(
      'list containers',
      async docker => await docker.listContainers({ all: true, filters: { label } })
    )
    for (const { Id: id } of left) await removeTools(engine, id, { purpose: 'that exchanged volumes' })
  }

  /** Until it is gone: what else removes it may not have done so yet. */
  async #remove(holder: string): Promise<void> {
    const { engine, clock } = this.parts
    await engine.call(
      'remove a container for the files of a volume',
      async docker => {
        await docker.getContainer(holder).remove({ force: true })
      },
      { absent: [404, 409], patient: true }
    )
    const isThere = async (): Promise<boolean> =>
      (await engine.call('inspect a container', async docker => await docker.getContainer(holder).inspect(), {
        absent: [404]
      })) !== undefined
    for (let waited = 0; await isThere(); waited += goneMs) {
      if (waited >= longestMs)
        throw problems.removalStuck({ container: short(holder), seconds: longestMs / 1000 })
      await clock.sleep(goneMs)
    }
  }
}
