import type { EngineInfo } from 'busbar/api/containers'
import type { Clock } from 'busbar/sdk'
import { findEngine, isOnThisMachine } from './engine-address.js'
import type { EngineClient } from './engine-client.js'
import type { PlatformContainer } from './platform-container.js'
import type { EngineSettings } from './settings.js'

interface DescriptionParts {
  readonly engine: EngineClient
  readonly platform: PlatformContainer
  readonly settings: EngineSettings
  readonly clock: Clock
}

/** What `GET /info` says, as far as it is asked for. The types of dockerode leave most of it open. */
type Described = Readonly<Record<string, unknown>>

/** By the field that says whether the machine can limit it. */
const limits = [
  ['memory', 'MemoryLimit'],
  ['swap', 'SwapLimit'],
  ['cpu', 'CpuCfsQuota'],
  ['processes', 'PidsLimit']
] as const

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
    const { clock } = this.parts
    const [version, { engine, clockAheadMs }] = await this.parts.engine.call(
      'describe itself',
      async docker =>
        await Promise.all([
          docker.version(),
          (async () => {
            const askedAt = clock.now().getTime()
            const engine = (await docker.info()) as Described
            return { engine, clockAheadMs: aheadOf(askedAt, clock.now().getTime(), engine.SystemTime) }
          })()
        ])
    )
    return {
      version: version.Version,
      apiVersion: version.ApiVersion,
      platform: `${version.Os}/${version.Arch}`,
      containers: Number(engine.Containers),
      containersRunning: Number(engine.ContainersRunning),
      containersPaused: Number(engine.ContainersPaused),
      containersStopped: Number(engine.ContainersStopped),
      images: Number(engine.Images),
      name: String(engine.Name),
      operatingSystem: String(engine.OperatingSystem),
      osType: String(engine.OSType),
      architecture: String(engine.Architecture),
      kernelVersion: String(engine.KernelVersion),
      loggingDriver: String(engine.LoggingDriver),
      cgroupDriver: String(engine.CgroupDriver),
      unlimited: limits.flatMap(([limit, field]) => (engine[field] === false ? [limit] : [])),
      clockAheadMs,
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

/** The engine has told its time somewhere between the question and the answer. */
function aheadOf(askedAt: number, answeredAt: number, told: unknown): number | null {
  const time = typeof told === 'string' ? Date.parse(told) : Number.NaN
  return Number.isNaN(time) ? null : Math.round(time - (askedAt + answeredAt) / 2)
}
