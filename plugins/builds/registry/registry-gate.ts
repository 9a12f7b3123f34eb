import { registryOf } from 'busbar/api/images'
import { isProblem } from 'busbar/sdk'
import { isAllowlisted } from '../network/host-policy.js'
import { type HostRules, resolveHost } from '../network/host-resolution.js'
import { problems } from '../problems.js'
import { probeRegistry } from './registry-probe.js'

/** Asked before a program pulls with the engine: that connects wherever an image's name leads it, and brings the answer back. */
export class RegistryGate {
  constructor(private readonly rules: HostRules) {}

  /**
   * Throws when the engine must not ask the registry of `image` (E_SOURCE_HOST_*), or when that is unknown because
   * it does not answer (a code of `registryAwayCodes`).
   */
  async admit(image: string, signal: AbortSignal): Promise<void> {
    const registry = registryOf(image)
    // No tenant decides what Docker Hub answers. An id names no registry.
    if (registry === 'docker.io') return
    const host = registry.replace(/:\d+$/, '')
    const isTrusted = isAllowlisted(this.rules.hostPolicy, host)
    const addresses = await resolveHost(host, this.rules, 'registry').catch((error: unknown) => {
      if (!isProblem(error) || error.code !== 'E_SOURCE_HOST_UNKNOWN') throw error
      // The engine may have a mirror or a proxy for it.
      if (isTrusted) return undefined
      throw problems.registryUnresolved({ registry, image, reason: error.message })
    })
    if (isTrusted || addresses === undefined) return
    await probeRegistry({ image, registry }, addresses, this.rules, signal)
  }
}
