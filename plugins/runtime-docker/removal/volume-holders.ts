import type { Log } from 'busbar/sdk'
import type Docker from 'dockerode'
import type { EngineClient } from '../engine-client.js'
import { fromEmptyImage, isImageGone, removeEmptyImage } from '../host/host-tools.js'
import { ToolLeftovers } from '../host/tool-leftovers.js'
import type { Identity } from '../identity.js'
import { holderSystem, imageInstanceLabel, ownerLabels, systemLabel } from '../labels.js'
import { isAnonymous } from '../volumes.js'

interface HoldersParts {
  readonly engine: EngineClient
  readonly instanceId: string
  readonly identity: Identity
  readonly log: Log
}

export interface VolumeHolder {
  readonly id: string
  /** Whose volumes they were. */
  readonly containerId: string
  readonly projectId: string
  readonly volumes: readonly string[]
}

const label = `${systemLabel}=${holderSystem}`
const namePrefix = 'busbar.volumes.'
const kind = { purpose: 'that holds volumes', label, lifeSeconds: 60 }

/**
 * A container has volumes that its image declares and nothing else names; what is in them goes with it, and may be millions of
 * files. So that it can go at once, they are handed to a container that never starts, which keeps them until they are
 * empty. It is there before the first one goes: whatever becomes of the platform in between, they are found by it.
 */
export class VolumeHolders {
  constructor(private readonly parts: HoldersParts) {}

  /** Whether the container has such volumes, and is to go without them. */
  async hold(seen: Docker.ContainerInspectInfo, projectId: string | undefined): Promise<boolean> {
    if (anonymousVolumes(seen).length === 0) return false
    const { engine, instanceId, identity, log } = this.parts
    try {
      const mark = identity.ofHolder({ projectId })
      const { image, made } = await fromEmptyImage(
        engine,
        { instanceId, label },
        async image => await this.#create(holderOptions(seen, image, mark))
      )
      await removeEmptyImage(engine, image)
      return made
    } catch (error) {
      log.warn(
        { err: error, containerId: seen.Id },
        'the volumes of a container cannot be emptied before the Docker Engine removes them, which takes long where they hold many files'
      )
      return false
    }
  }

  /** False where the container has gone meanwhile. */
  async #create(options: Docker.ContainerCreateOptions): Promise<boolean> {
    return await this.parts.engine.call(
      'create a container that holds volumes',
      async docker =>
        await docker.createContainer(options).then(
          () => true,
          (error: unknown) => {
            const { statusCode: status } = error as { readonly statusCode?: number }
            // The name is taken: they are held already.
            if (status === 409) return true
            if (status === 404 && !isImageGone(error)) return false
            throw error
          }
        )
    )
  }

  /** How many a project has. */
  async count(projectId: string): Promise<number> {
    return (await this.#found(Object.entries(ownerLabels({ projectId })).map(pair => pair.join('=')))).length
  }

  async list(): Promise<readonly VolumeHolder[]> {
    const { engine, identity } = this.parts
    const found = await this.#found()
    const holders: VolumeHolder[] = []
    for (const { Id: id } of found) {
      const seen = await engine.call(
        'inspect a container',
        async docker => await docker.getContainer(id).inspect(),
        { absent: [404] }
      )
      const owner = seen === undefined ? undefined : identity.holder(seen)
      if (seen === undefined || owner === undefined) continue
      const volumes = (seen.Mounts ?? []).flatMap(({ Type: type, Name: name }) =>
        type === 'volume' && name !== undefined ? [name] : []
      )
      holders.push({
        id,
        containerId: seen.Name.slice(1 + namePrefix.length),
        projectId: owner.projectId ?? '',
        volumes
      })
    }
    return holders
  }

  async #found(labels: readonly string[] = []): Promise<readonly Docker.ContainerInfo[]> {
    const { engine, instanceId } = this.parts
    return await engine.call(
      'list containers',
      async docker =>
        await docker.listContainers({
          all: true,
          filters: { label: [`${imageInstanceLabel}=${instanceId}`, label, ...labels] }
        })
    )
  }

  /** With its volumes. */
  async remove({ id }: VolumeHolder): Promise<void> {
    await this.parts.engine.call(
      'remove a container that holds volumes',
      async docker => {
        await docker.getContainer(id).remove({ v: true })
      },
      { absent: [404, 409], patient: true }
    )
  }

  /** Images of which a platform that was killed has made no container. */
  async removeLeftImages(): Promise<void> {
    await new ToolLeftovers(this.parts.engine, this.parts.instanceId, kind).removeImages()
  }
}

type Seen = Pick<Docker.ContainerInspectInfo, 'Id' | 'HostConfig' | 'Mounts'>

/** Neither those that a spec names nor what a person has given such a name. */
function anonymousVolumes({ HostConfig: host, Mounts: mounts }: Seen): readonly string[] {
  const named = new Set([
    ...(host.Mounts ?? []).map(({ Source: source }) => source),
    ...(host.Binds ?? []).map(bind => bind.split(':')[0])
  ])
  return (mounts ?? []).flatMap(({ Type: type, Name: name = '' }) =>
    type === 'volume' && isAnonymous(name) && !named.has(name) ? [name] : []
  )
}

/** It takes over what the container has mounted, but for what is not to go with it. */
function holderOptions(
  seen: Seen,
  image: string,
  { labels, mark }: ReturnType<Identity['ofHolder']>
): Docker.ContainerCreateOptions {
  const held = new Set(anonymousVolumes(seen))
  return {
    name: namePrefix + seen.Id,
    Image: image,
    Cmd: ['never-started'],
    Labels: labels,
    HostConfig: {
      ContainerIDFile: mark,
      NetworkMode: 'none',
      VolumesFrom: [seen.Id],
      Mounts: (seen.Mounts ?? [])
        .filter(({ Name: name = '' }) => !held.has(name))
        .map(({ Destination: target }) => ({ Type: 'tmpfs' as const, Source: '', Target: target }))
    }
  }
}
