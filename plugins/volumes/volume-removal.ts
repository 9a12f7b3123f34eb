import type { ContainerRuntime } from 'busbar/api/containers'
import type { EngineVolumeStore } from './engine-volume-store.js'
import { enginePrefixOf, sparePrefix } from './volume-name.js'

interface VolumeRemovalParts {
  readonly store: Pick<EngineVolumeStore, 'of' | 'forget'>
  readonly runtime: ContainerRuntime
}

const graceSeconds = 5

/** What an application leaves on the engine. */
export class VolumeRemoval {
  constructor(private readonly parts: VolumeRemovalParts) {}

  /**
   * While it is being deleted. Its containers go first, which is done by others too, but later: what they have mounted stays
   * for as long as they are there.
   */
  async ofApplication(applicationId: string, signal: AbortSignal): Promise<void> {
    const { store, runtime } = this.parts
    const names = await store.of(applicationId)
    // Without any, there is no need of an engine.
    if (names.length === 0) return
    for (const { id } of await runtime.list({ applicationId })) {
      signal.throwIfAborted()
      await runtime.stop(id, graceSeconds)
      await runtime.remove(id)
    }
    for (const name of names) {
      signal.throwIfAborted()
      await runtime.removeVolume(name)
      await store.forget(name)
    }
  }

  /** When it is gone, nobody makes any more: a deploy under way may have, after they had been removed. */
  async leftOf(applicationId: string): Promise<void> {
    const { runtime } = this.parts
    const own = enginePrefixOf(applicationId)
    for (const name of await runtime.volumeNames({ applicationId }))
      if (name.startsWith(own) || name.startsWith(sparePrefix)) await runtime.removeVolume(name)
  }
}
