import type { Clock } from 'busbar/sdk'
import type Docker from 'dockerode'
import type { ContainerOwners } from './container-owners.js'
import type { EngineClient } from './engine-client.js'
import type { FileHolders } from './file-holders.js'
import { problems } from './problems.js'
import type { VolumeHolders } from './removal/volume-holders.js'

const removalPollMs = 100
const removalSeconds = 30

interface ContainerAccessParts {
  readonly engine: EngineClient
  readonly owners: ContainerOwners
  readonly clock: Clock
  readonly holders: Pick<VolumeHolders, 'hold'>
  readonly files: Pick<FileHolders, 'removeOf'>
  /** A container of this project has gone whose volumes are held. */
  readonly onHeld: (projectId: string | undefined) => Promise<void>
}

/** Finds containers by id or name, and refuses those that are not this platform's. */
export class ContainerAccess {
  constructor(private readonly parts: ContainerAccessParts) {}

  /** Foreign ones too; undefined when it is gone. */
  async find(containerId: string): Promise<Docker.ContainerInspectInfo | undefined> {
    if (!isContainerName(containerId)) return undefined
    return await this.parts.engine.call(
      `inspect the container ${short(containerId)}`,
      async docker => await docker.getContainer(containerId).inspect(),
      { absent: [404] }
    )
  }

  /** Undefined when it is gone; refuses what another platform, a build or a person has made. */
  async own(containerId: string): Promise<Docker.ContainerInspectInfo | undefined> {
    const seen = await this.find(containerId)
    if (seen === undefined || this.parts.owners.ofInspected(seen) !== undefined) return seen
    throw problems.containerForeign({ container: seen.Name.slice(1) })
  }

  /** The same; throws where it is gone. */
  async existing(containerId: string): Promise<Docker.ContainerInspectInfo> {
    const seen = await this.own(containerId)
    if (seen === undefined) throw problems.containerMissing({ container: short(containerId) })
    return seen
  }

  /**
   * Throws where it is gone or not this platform's. Whose a container is never changes, so that the engine is asked once for each:
   * for calls that are made again and again, and themselves tell of one that is gone since.
   */
  async verified(containerId: string): Promise<void> {
    const isOwn = isContainerName(containerId) && (await this.parts.owners.of(containerId)) !== undefined
    if (!isOwn) await this.existing(containerId)
  }

  /** As `existing`; throws where it does not run. */
  async running(containerId: string): Promise<Docker.ContainerInspectInfo> {
    const seen = await this.existing(containerId)
    if (!seen.State.Running)
      throw problems.containerNotRunning({ container: short(containerId), status: seen.State.Status })
    return seen
  }

  /** Foreign ones too; waits until it is gone, and for the files in its anonymous volumes only where those of many others wait to go. */
  async remove(seen: Docker.ContainerInspectInfo): Promise<void> {
    const { Id: containerId } = seen
    const { owners, holders, files, onHeld } = this.parts
    const projectId = owners.ofInspected(seen)?.projectId
    const isHeld = await holders.hold(seen, projectId)
    const removed = await this.parts.engine.call(
      `remove the container ${short(containerId)}`,
      async docker => {
        await docker.getContainer(containerId).remove({ force: true, v: !isHeld })
        return true
      },
      { absent: [404, 409], patient: true }
    )
    // 409: another call is removing it already.
    if (removed === undefined) await this.#untilGone(containerId)
    await files.removeOf(seen)
    if (isHeld) await onHeld(projectId)
  }

  async #untilGone(containerId: string): Promise<void> {
    for (let waited = 0; (await this.find(containerId)) !== undefined; waited += removalPollMs) {
      if (waited >= removalSeconds * 1000)
        throw problems.removalStuck({ container: short(containerId), seconds: removalSeconds })
      await this.parts.clock.sleep(removalPollMs)
    }
  }
}

/** What is no name cannot exist, and must not become part of a URL. */
const isContainerName = (text: string): boolean => /^[a-zA-Z0-9][\w.-]+$/.test(text)

/** Ids are shown as docker does, names whole. */
export const short = (container: string): string =>
  /^[0-9a-f]{64}$/.test(container) ? container.slice(0, 12) : container
