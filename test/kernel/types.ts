import { access, healthChecks, type KernelServices } from 'busbar/sdk'
import type { PluginServices } from '../../core/services/container.js'
import type { ServiceRegistry } from '../../core/services/registry.js'

/** Checked by the compiler: what the kernel reads and gives by name does not compile when the name is misspelt. */
export async function typedNames(registry: ServiceRegistry, services: PluginServices): Promise<void> {
  const sources = registry.contributions(access.credentials)
  sources.get('identity')
  // @ts-expect-error nobody contributes under this key
  sources.get('idenity')
  // @ts-expect-error an extension point is asked for by its key, not by text
  registry.contributions('kernel.healthCheks')
  // @ts-expect-error its contributions have no such method
  await registry.contributions(healthChecks).get('docker')?.chekc()
  services.database.transaction
  // @ts-expect-error the kernel has no such service
  services.databse
  const given: Pick<KernelServices, 'audit' | 'clock'> = {
    clock: services.clock,
    // @ts-expect-error the kernel has no such service
    audti: services.audit
  }
  return void given
}
