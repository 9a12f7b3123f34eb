import { existsSync, readFileSync } from 'node:fs'
import { hostname } from 'node:os'
import type { PublishedPort } from 'busbar/api/containers'
import type Docker from 'dockerode'
import type { EngineClient } from './engine-client.js'

/** `configured`: API_CONTAINER_NAME. Names the platform's own container may have, likeliest first; none when it does not run in one. */
export function ownContainerNames(configured: string | undefined): string[] {
  if (configured !== undefined) return [configured]
  if (!existsSync('/.dockerenv')) return []
  const mounted = mountedContainerId(readMounts())
  return [...(mounted === undefined ? [] : [mounted]), hostname()]
}

/**
 * The engine mounts `/etc/hostname` from a folder that bears the container's id. Where an engine runs beside the platform in one
 * container, mounts of other containers are seen, too, at other places.
 */
export function mountedContainerId(mountInfo: string): string | undefined {
  const hostnameLine = mountInfo.split('\n').find(line => line.split(' ', 5)[4] === '/etc/hostname')
  const parts = hostnameLine?.split(' ', 4)[3]?.split('/') ?? []
  const id = parts[parts.lastIndexOf('containers') + 1] ?? ''
  return /^[0-9a-f]{64}$/.test(id) ? id : undefined
}

function readMounts(): string {
  try {
    return readFileSync('/proc/self/mountinfo', 'utf8')
  } catch {
    return ''
  }
}

/**
 * The container the platform runs in, if it runs in one on this engine. Such a platform reaches the
 * containers of a project only from within the project's network.
 */
export class PlatformContainer {
  #found: Promise<string | undefined> | undefined

  constructor(
    private readonly engine: EngineClient,
    private readonly names: readonly string[]
  ) {}

  /** True when the platform runs in a container of this engine. */
  async isKnown(): Promise<boolean> {
    return (await this.id()) !== undefined
  }

  /** Undefined where it runs in none of this engine. */
  async id(): Promise<string | undefined> {
    this.#found ??= this.#find()
    return await this.#found.catch((error: unknown) => {
      this.#found = undefined
      throw error
    })
  }

  /** Null where it runs in none of this engine, or in one that has the network of the machine. */
  async publishedPorts(): Promise<readonly PublishedPort[] | null> {
    const id = await this.id()
    const seen = id === undefined ? undefined : await this.#inspect(id)
    if (seen === undefined || seen.HostConfig.NetworkMode === 'host') return null
    return publishedPorts(seen.HostConfig.PortBindings)
  }

  async join(network: string): Promise<void> {
    const id = await this.id()
    if (id === undefined) return
    const seen = await this.#inspect(id)
    if (seen?.NetworkSettings.Networks[network] !== undefined) return
    await this.engine.call(
      `connect the platform's container to the network ${network}`,
      async docker => {
        await docker.getNetwork(network).connect({ Container: id })
      },
      { absent: [403] }
    ) // 403: connected by another request meanwhile
  }

  async leave(networkId: string): Promise<void> {
    const id = await this.id()
    if (id === undefined) return
    const seen = await this.#inspect(id)
    const isIn = Object.values(seen?.NetworkSettings.Networks ?? {}).some(
      ({ NetworkID }) => NetworkID === networkId
    )
    if (!isIn) return
    await this.engine.call(
      "disconnect the platform's container from a network",
      async docker => {
        await docker.getNetwork(networkId).disconnect({ Container: id, Force: true })
      },
      { absent: [403, 404] }
    )
  }

  async #find(): Promise<string | undefined> {
    for (const name of this.names) {
      const seen = await this.#inspect(name)
      if (seen !== undefined) return seen.Id
    }
    return undefined
  }

  async #inspect(name: string): Promise<Docker.ContainerInspectInfo | undefined> {
    return await this.engine.call(
      "inspect the platform's container",
      async docker => await docker.getContainer(name).inspect(),
      { absent: [404] }
    )
  }
}

/**
 * As they were asked for, which never changes: what the engine says it has published is gone for a moment when the container
 * joins a network.
 */
export function publishedPorts(bindings: unknown): PublishedPort[] {
  const asked = (bindings ?? {}) as Readonly<Record<string, readonly Docker.PortBinding[] | null>>
  return Object.entries(asked).flatMap(([name, at]) => {
    const [containerPort, protocol = ''] = name.split('/')
    return (at ?? []).map(({ HostIp = '', HostPort }) => ({
      host: HostIp === '0.0.0.0' || HostIp === '::' ? '' : HostIp,
      hostPort: Number(HostPort) || 0,
      containerPort: Number(containerPort),
      protocol
    }))
  })
}
