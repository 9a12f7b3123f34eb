import { asValue, createContainer, InjectionMode } from 'awilix/browser'
import type { KernelServices, Log, Needs } from 'busbar/sdk'
import { handedService } from '../frames/handed-errors.js'
import { optionalHandle } from './optional-handle.js'
import type { ServiceRegistry } from './registry.js'

/** What third-party plugins do not get. */
export type BuiltInServices = Pick<
  KernelServices,
  'audit' | 'credentials' | 'installation' | 'operations' | 'projectFacts' | 'statistics'
>
export type CommonServices = Omit<KernelServices, keyof BuiltInServices>

/** What the kernel gives one plugin, by the names of its grants: a database in its own schema, its own jobs… */
export type PluginServices = CommonServices & Partial<BuiltInServices>

/** Why a plugin does not get what it needs; the words name the plugin.json entry that is missing. */
class GrantError extends Error {}

export interface ContainerOptions {
  readonly plugin: string
  readonly builtIn: boolean
  readonly needs: Needs
  /** What the plugin's manifest asks for, and what of it the operator has consented to. */
  readonly asked: readonly string[]
  readonly grants: readonly string[]
  /** Ids of the plugins that the manifest requires or optionally uses, itself included. */
  readonly reachable: ReadonlySet<string>
  readonly registry: ServiceRegistry
  readonly kernelServices: PluginServices
}

/**
 * What the plugin's `start` gets as `use`: one awilix container per plugin, holding only what its manifest
 * asked for and the operator granted. Not a child scope: a scope resolves everything of its parent, other
 * plugins' secrets included.
 */
export function createPluginContainer(
  options: ContainerOptions,
  run: { readonly log: Log; readonly ended: AbortSignal }
): Readonly<Record<string, never>> {
  const container = createContainer<Record<string, never>>({
    injectionMode: InjectionMode.PROXY,
    strict: true
  })
  for (const [name, need] of Object.entries(options.needs))
    container.register(name, asValue(resolve(need, options, run)))
  return container.cradle
}

function resolve(
  need: Needs[string],
  { plugin, builtIn, asked, grants, reachable, registry, kernelServices }: ContainerOptions,
  run: { readonly log: Log; readonly ended: AbortSignal }
): unknown {
  const id = need.kind === 'optional' ? need.service.id : need.id
  const owner = id.slice(0, id.indexOf('.'))
  if (need.kind === 'extension-point') {
    // What is contributed there decides who is let in, and is handed out as it is.
    if (!builtIn && owner === 'access')
      throw new GrantError(
        `"${plugin}" uses the extension point "${id}", which is not for third-party plugins to read`
      )
    return registry.contributions(need)
  }
  if (owner === 'kernel') {
    const name = id.slice('kernel.'.length)
    if (!grants.includes(name) && asked.includes(name))
      throw new GrantError(
        `"${plugin}" uses kernel.${name}, which its plugin.json asks for and which is not granted yet; disable it and enable it again to grant that`
      )
    if (!grants.includes(name))
      throw new GrantError(`"${plugin}" uses kernel.${name}; add "${name}" to "grants" in its plugin.json`)
    const granted = isOffered(name, kernelServices) ? kernelServices[name] : undefined
    if (granted === undefined)
      throw new GrantError(
        `"${plugin}" asks for kernel.${name}, which is not for third-party plugins or does not exist`
      )
    return granted
  }
  if (!reachable.has(owner)) {
    throw new GrantError(
      `"${plugin}" uses the service "${id}"; add "${owner}" to "${need.kind === 'optional' ? 'optional' : 'requires'}" in its plugin.json`
    )
  }
  // The same each time, as those of built-in plugins are.
  const handed = new Map<object, object>()
  const handle = (): object => {
    const found = registry.handle(id)
    if (builtIn) return found
    const known = handed.get(found) ?? handedService(plugin, found)
    handed.set(found, known)
    return known
  }
  const isWithheld = (): boolean => !builtIn && registry.isBuiltInOnly(id)
  if (isWithheld())
    throw new GrantError(`"${plugin}" uses the service "${id}", which is not for third-party plugins`)
  if (need.kind === 'optional')
    return optionalHandle(id, { ...run, handle, registry, isWithheld, clock: kernelServices.clock })
  if (!registry.isProvided(id))
    throw new GrantError(`"${plugin}" needs the service "${id}", which "${owner}" does not provide`)
  return handle()
}

const isOffered = (name: string, services: PluginServices): name is keyof PluginServices =>
  Object.hasOwn(services, name)
