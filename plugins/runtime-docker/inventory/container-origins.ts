import type { Listed, Owner } from 'busbar/api/containers'
import type Docker from 'dockerode'
import type { ContainerOwners } from '../container-owners.js'
import type { EngineClient } from '../engine-client.js'
import type { Identity } from '../identity.js'
import { imageInstanceLabel, type Labels, systemLabel } from '../labels.js'
import type { PlatformContainer } from '../platform-container.js'
import { stepOwnerOf } from '../step-containers.js'

interface OriginsParts {
  readonly engine: EngineClient
  readonly instanceId: string
  readonly identity: Identity
  readonly owners: ContainerOwners
  readonly platform: PlatformContainer
}

const foreign: Listed = Object.freeze({ owner: null, isManaged: false })
const ofPlatform: Listed = Object.freeze({ owner: null, isManaged: true })
const ownedBy = (owner: Owner | undefined): Listed =>
  owner === undefined ? foreign : { owner, isManaged: true }

/** Some megabytes; of what is forgotten the engine is asked again. */
const mostKnown = 20_000
const askedAtOnce = 8

interface Claimant {
  readonly id: string
  readonly labels: Labels
}

/**
 * Whose the containers of a list are: those of an application or database, steps of builds, what the platform has made for
 * itself, and the one that it runs in. Most say by their labels that they are none of these; the others are looked at, once.
 */
export class ContainerOrigins {
  /** Of those that say that they were made from an image of ours. */
  readonly #fromImages = new Map<string, Listed>()

  constructor(private readonly parts: OriginsParts) {}

  /** In the order of the list. */
  async of(containers: readonly Claimant[]): Promise<readonly Listed[]> {
    const platformId = await this.parts.platform.id()
    const found: Listed[] = []
    for (let at = 0; at < containers.length; ) {
      // Whoever claims nothing is not asked for, and known ones are not either: of a long list few are left.
      const batch: Array<Listed | Promise<Listed>> = []
      for (let asked = 0; at < containers.length && asked < askedAtOnce; at++) {
        const one = containers[at]
        const origin = one === undefined || one.id === platformId ? ofPlatform : this.#origin(one)
        if (origin instanceof Promise) asked++
        batch.push(origin)
      }
      found.push(...(await Promise.all(batch)))
    }
    return found
  }

  #origin({ id, labels }: Claimant): Listed | Promise<Listed> {
    if (this.parts.identity.claimsContainer(labels)) {
      const known = this.parts.owners.known(id)
      return known === undefined ? this.#owned(id) : ownedBy(known ?? undefined)
    }
    if (labels[imageInstanceLabel] !== this.parts.instanceId) return foreign
    return this.#fromImages.get(id) ?? this.#fromImage(id)
  }

  async #owned(id: string): Promise<Listed> {
    return ownedBy(await this.parts.owners.of(id))
  }

  async #fromImage(id: string): Promise<Listed> {
    const seen = await this.parts.engine.call(
      'inspect a container',
      async docker => await docker.getContainer(id).inspect(),
      { absent: [404] }
    )
    if (seen === undefined) return foreign
    const origin = this.#read(seen)
    this.#fromImages.set(id, origin)
    for (const oldest of this.#fromImages.keys()) {
      if (this.#fromImages.size <= mostKnown) break
      this.#fromImages.delete(oldest)
    }
    return origin
  }

  #read(seen: Docker.ContainerInspectInfo): Listed {
    const { identity } = this.parts
    const labels = seen.Config.Labels ?? {}
    if (labels[systemLabel]) {
      const held = identity.holder(seen)
      if (held !== undefined) return held.projectId === undefined ? ofPlatform : ownedBy(held)
      return isTool(seen) ? ofPlatform : foreign
    }
    return ownedBy(stepOwnerOf(seen, identity))
  }
}

/**
 * A container of host tools, see `withHostTools`. It has its labels from an image, which anybody may have made; how it is
 * run comes from no image.
 */
const isTool = ({ HostConfig: host }: Docker.ContainerInspectInfo): boolean =>
  host.AutoRemove === true &&
  host.LogConfig?.Type === 'none' &&
  host.CapDrop?.[0] === 'ALL' &&
  host.PidsLimit === 64
