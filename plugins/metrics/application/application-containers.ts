import type { ContainerRuntime } from 'busbar/api/containers'
import type { OptionalHandle } from 'busbar/sdk'
import { problems } from '../problems.js'
import type { RunningApplication } from './application-store.js'

/** Some megabytes; what is forgotten is looked for again. */
const mostKnown = 20_000

interface Known {
  readonly deploymentId: string
  readonly containerId: string
}

/** Which container an application runs in. It stays the same for as long as the deployment does, so it is looked for once. */
export class ApplicationContainers {
  readonly #known = new Map<string, Known>()

  constructor(private readonly runtime: OptionalHandle<Pick<ContainerRuntime, 'list'>>) {}

  /** Undefined while it has none. */
  async find({ id, deploymentId }: RunningApplication): Promise<string | undefined> {
    const known = this.#known.get(id)
    if (known?.deploymentId === deploymentId) return known.containerId
    const engine = this.runtime.get()
    if (engine === undefined) throw problems.containersOff()
    const [container] = await engine.list({ applicationId: id, deploymentId })
    if (container !== undefined) this.note(id, { deploymentId, containerId: container.id })
    return container?.id
  }

  note(applicationId: string, known: Known): void {
    this.#known.delete(applicationId)
    this.#known.set(applicationId, known)
    for (const oldest of this.#known.keys()) {
      if (this.#known.size <= mostKnown) break
      this.#known.delete(oldest)
    }
  }

  /** It is looked for again when it is asked for. */
  forget(applicationId: string): void {
    this.#known.delete(applicationId)
  }
}
