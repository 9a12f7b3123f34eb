import { type ContainerRuntime, registryAwayCodes, registryOf } from 'busbar/api/runtime-docker'
import { isProblem } from 'busbar/sdk'
import { isVouchedFor } from '../network/host-policy.js'
import { type HostRules, resolveHost } from '../network/host-resolution.js'
import { problems } from '../problems.js'
import { askDoor } from './registry-door.js'

/** `told`: why a pull fails may be told in the engine's words. `quiet`: they could speak of a host that the registry has led the engine to. */
type Telling = 'told' | 'quiet'

/** Asked before each pull: the engine connects wherever an image's name leads it, and brings the answer back. */
export class RegistryGate {
  constructor(private readonly rules: HostRules) {}

  /**
   * Throws when the engine must not ask the registry of `image` (E_SOURCE_HOST_*), or when nobody can tell because
   * it does not answer (a code of `registryAwayCodes`).
   */
  async admit(image: string, signal: AbortSignal): Promise<Telling> {
    const registry = registryOf(image)
    // No tenant decides what Docker Hub answers. An id names no registry.
    if (registry === 'docker.io') return 'told'
    const host = registry.replace(/:\d+$/, '')
    const isTrusted = isVouchedFor(this.rules.hostPolicy(), host)
    const addresses = await resolveHost(host, this.rules, 'registry').catch((error: unknown) => {
      if (!isProblem(error) || error.code !== 'E_SOURCE_HOST_UNKNOWN') throw error
      // The engine may have a mirror or a proxy for it.
      if (isTrusted) return undefined
      throw problems.registryUnresolved({ registry, image, reason: error.message })
    })
    if (isTrusted || addresses === undefined) return 'told'
    await askDoor({ image, registry }, addresses, this.rules, signal)
    return 'quiet'
  }
}

/** The runtime, as the kernel hands it out (an object of functions), whose pulls pass the gate first. */
export function withGatedPulls(runtime: ContainerRuntime, gate: RegistryGate): ContainerRuntime {
  const pull: ContainerRuntime['pull'] = async (image, options) => {
    const telling = await gate.admit(image, options.signal)
    try {
      return await runtime.pull(image, options)
    } catch (error) {
      throw telling === 'quiet' ? quiet(error, image) : error
    }
  }
  return { ...runtime, pull }
}

/** By these a closed port, a silent one, a web page and a banner would be told apart, if not what they say. */
const tellingCodes: readonly string[] = [
  ...registryAwayCodes,
  'E_IMAGE_BROKEN',
  'E_IMAGE_FORMAT',
  'E_IMAGE_PULL',
  'E_ENGINE_REFUSED'
]

const quiet = (error: unknown, image: string): unknown =>
  isProblem(error) && tellingCodes.includes(error.code)
    ? problems.registryQuiet({ image, registry: registryOf(image) })
    : error
