import type { ContainerRuntime } from 'busbar/api/containers'

type Address = Awaited<ReturnType<ContainerRuntime['dial']>>

/**
 * Where containers are reached, known until the engine tells that something has happened to one, or may have: to ask it each time
 * costs more than what the address is wanted for.
 */
export class KnownAddresses {
  readonly #known = new Map<string, Address>()
  #isFollowing = false
  /** Of what the engine has told. */
  #changes = 0

  constructor(private readonly runtime: Pick<ContainerRuntime, 'dial' | 'events'>) {}

  /** Nothing is known from before or after that. Rejects when the engine cannot be followed any more. */
  async follow(signal: AbortSignal): Promise<void> {
    try {
      for await (const event of this.runtime.events(signal)) {
        this.#isFollowing = true
        this.#changes++
        if (event.kind === 'resync') this.#known.clear()
        else this.#known.delete(event.containerId)
      }
    } finally {
      this.#isFollowing = false
      this.#known.clear()
    }
  }

  async dial(containerId: string, port: number): Promise<Address> {
    const known = this.#known.get(containerId)
    if (known?.port === port) return known
    const changes = this.#changes
    const address = await this.runtime.dial(containerId, port)
    if (this.#isFollowing && this.#changes === changes) this.#known.set(containerId, address)
    return address
  }

  /** It did not answer there as it should; it is looked for anew. */
  forget(containerId: string): void {
    this.#known.delete(containerId)
  }
}
