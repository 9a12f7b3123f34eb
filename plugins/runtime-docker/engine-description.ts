import type { EngineInfo } from 'busbar/api/containers'
import { findEngine, isOnThisMachine } from './engine-address.js'
import type { EngineClient } from './engine-client.js'
import type { PlatformContainer } from './platform-container.js'
import type { EngineSettings } from './settings.js'

interface DescriptionParts {
  readonly engine: EngineClient
  readonly platform: PlatformContainer
  readonly settings: EngineSettings
}

/** What the engine says of itself and its machine, and the last answer. */
export class EngineDescription {
  #last: { readonly info: EngineInfo; readonly at: number } | undefined

  constructor(private readonly parts: DescriptionParts) {}

  /** An answer up to `maxAgeMs` old. */
  async read({ maxAgeMs = 0 }: { readonly maxAgeMs?: number } = {}): Promise<EngineInfo> {
    if (this.#last !== undefined && performance.now() - this.#last.at < maxAgeMs) return this.#last.info
    const info = await this.#ask()
    this.#last = { info, at: performance.now() }
    return info
  }

  async #ask(): Promise<EngineInfo> {
    const [version, engine] = await this.parts.engine.call(
      'describe itself',
      async docker => await Promise.all([docker.version(), docker.info()])
    )
    return {
      version: version.Version,
      apiVersion: version.ApiVersion,
      platform: `${version.Os}/${version.Arch}`,
      containers: Number(engine.Containers),
      cores: Number(engine.NCPU),
      memoryBytes: Number(engine.MemTotal),
      dataRoot: String(engine.DockerRootDir),
      storageDriver: String(engine.Driver),
      cgroupVersion: String(engine.CgroupVersion) === '2' ? 2 : 1,
      place: await this.place()
    }
  }

  /** Where it is, seen from here. */
  async place(): Promise<EngineInfo['place']> {
    const { platform, settings } = this.parts
    return (await platform.isKnown())
      ? 'around'
      : isOnThisMachine(findEngine(settings))
        ? 'here'
        : 'elsewhere'
  }
}
