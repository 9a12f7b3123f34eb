import type { ContainerRuntime, EngineInventory, Listed, Owner } from 'busbar/api/containers'
import { isProblem, type Page, pageOf, type Reach, type Resources, type Rows } from 'busbar/sdk'
import type { DiskFigures } from './disk-figures.js'
import { ownerNames } from './owner-names.js'
import type {
  ContainerAnswer,
  ImageAnswer,
  NetworkAnswer,
  Overview,
  OwnerAnswer,
  VolumeAnswer
} from './schemas.js'
import {
  containersOfImages,
  diskUsage,
  isWithin,
  membersOfNetworks,
  ownerAnswer,
  portMap,
  sharedSize,
  systemInfo,
  usersOfVolumes,
  volumeKind,
  volumeOwner,
  volumeSize
} from './view-rows.js'

interface ViewsParts {
  readonly runtime: Pick<ContainerRuntime, 'info'>
  readonly inventory: EngineInventory
  readonly figures: Pick<DiskFigures, 'read'>
  readonly resources: Pick<Resources, 'namesOf'>
}

type WithOwner<T> = Omit<T, 'owner' | 'isManaged'> & {
  readonly owner: OwnerAnswer | null
  readonly managed: boolean
}

/** What an admin sees of the engine. */
export class DockerViews {
  constructor(private readonly parts: ViewsParts) {}

  async overview(): Promise<Overview> {
    const { inventory, figures } = this.parts
    const [info, containers, images, volumes, disk] = await Promise.all([
      this.#info(),
      inventory.containers(),
      inventory.images(),
      inventory.volumes(),
      figures.read()
    ])
    return {
      info,
      disk_usage: disk === undefined ? null : diskUsage(disk),
      counts: {
        containers_running: containers.filter(({ status }) => status === 'running').length,
        containers_total: containers.length,
        images: images.length,
        volumes: volumes.length
      }
    }
  }

  async containers(reach: Reach, page: Page): Promise<Rows<ContainerAnswer>> {
    const all = await this.parts.inventory.containers()
    return await this.#page(reach, page, all, ({ ports, createdAt, ...row }) => ({
      id: row.id,
      name: row.name,
      image: row.image,
      status: row.status,
      ports: portMap(ports),
      managed: row.managed,
      owner: row.owner,
      created_at: createdAt
    }))
  }

  async images(reach: Reach, page: Page): Promise<Rows<ImageAnswer>> {
    const { inventory, figures } = this.parts
    const [all, containers, disk] = await Promise.all([
      inventory.images(),
      inventory.containers(),
      figures.read()
    ])
    const counts = containersOfImages(containers)
    return await this.#page(
      reach,
      page,
      all,
      ({ id, tags, sizeBytes, isDangling, createdAt, managed, owner }) => ({
        id,
        repo_tags: [...tags],
        size: sizeBytes,
        shared_size: sharedSize(disk?.use, id),
        containers: counts.get(id) ?? 0,
        dangling: isDangling,
        managed,
        owner,
        created_at: createdAt
      })
    )
  }

  async networks(reach: Reach, page: Page): Promise<Rows<NetworkAnswer>> {
    const { inventory } = this.parts
    const [all, containers] = await Promise.all([inventory.networks(), inventory.containers()])
    const members = membersOfNetworks(containers.filter(container => isWithin(container, reach.pins)))
    return await this.#page(
      reach,
      page,
      all,
      ({ id, name, driver, scope, isInternal, createdAt, managed, owner }) => {
        const connected = members.get(id) ?? []
        return {
          id,
          name,
          driver,
          scope,
          internal: isInternal,
          managed,
          owner,
          containers: connected.slice(0, mostMembers),
          container_count: connected.length,
          created_at: createdAt
        }
      }
    )
  }

  async volumes(reach: Reach, page: Page): Promise<Rows<VolumeAnswer>> {
    const { inventory, figures } = this.parts
    const [listed, containers, disk] = await Promise.all([
      inventory.volumes(),
      inventory.containers(),
      figures.read()
    ])
    const users = usersOfVolumes(containers)
    const all = listed.map(volume => {
      const { owner, isManaged } = volumeOwner(volume, users.get(volume.name) ?? [])
      return { ...volume, owner, isManaged }
    })
    return await this.#page(
      reach,
      page,
      all,
      ({ name, driver, mountpoint, scope, createdAt, managed, owner }) => ({
        name,
        driver,
        mountpoint,
        scope,
        size: volumeSize(disk?.use, name),
        ref_count: users.get(name)?.length ?? 0,
        managed,
        kind: volumeKind(name, managed),
        owner,
        created_at: createdAt ?? new Date(0)
      })
    )
  }

  /** Those within the caller's reach, and of the page with the names of their owners. */
  async #page<T extends Listed, A>(
    { pins }: Reach,
    page: Page,
    all: readonly T[],
    answer: (row: WithOwner<T>) => A
  ): Promise<Rows<A>> {
    const { rows, total } = pageOf(page, pins === null ? all : all.filter(row => isWithin(row, pins)))
    const owners = rows.flatMap(({ owner }): Owner[] => (owner === null ? [] : [owner]))
    const nameOf = await ownerNames(this.parts.resources, owners)
    return {
      rows: rows.map(({ owner, isManaged, ...row }) =>
        answer({
          ...row,
          managed: isManaged,
          owner: owner === null ? null : ownerAnswer(owner, nameOf(owner))
        })
      ),
      total
    }
  }

  /** An engine may list what it has and not say what it is. */
  async #info(): Promise<Overview['info']> {
    try {
      return systemInfo(await this.parts.runtime.info())
    } catch (error) {
      if (isProblem(error) && error.code === 'E_ENGINE_REFUSED') return null
      throw error
    }
  }
}

/** Containers of one network that are told; the network of a project has room for fewer. */
const mostMembers = 500
