import semver from 'semver'
import type { Contract } from './contract.js'
import type { Manifest } from './manifest.js'

/** What stands behind an id that a manifest may require. */
interface Offer {
  readonly version: string
  readonly isContract: boolean
  /** Of a plugin itself; of a contract the plugins that implement it, the one that provides it first. */
  readonly providers: readonly string[]
}

/** By the id that manifests name: of a plugin, or of a contract. */
export type Offers = ReadonlyMap<string, Offer>

/** `plugins` stand in the order in which they take precedence where several implement one contract. */
export function offersOf(
  plugins: ReadonlyArray<Pick<Manifest, 'id' | 'version' | 'implements'>>,
  contracts: readonly Contract[]
): Offers {
  const implementing = ({ id, version }: Contract): string[] =>
    plugins
      .filter(plugin => {
        const range = plugin.implements[id]
        return range !== undefined && semver.satisfies(version, range)
      })
      .map(plugin => plugin.id)
  return new Map<string, Offer>([
    ...contracts.map(
      contract =>
        [
          contract.id,
          { version: contract.version, isContract: true, providers: implementing(contract) }
        ] as const
    ),
    ...plugins.map(({ id, version }) => [id, { version, isContract: false, providers: [id] }] as const)
  ])
}

/** The plugin that must run for what requires `id`; `id` itself where it is nothing that is installed. */
export const providerOf = (id: string, offers: Offers): string => offers.get(id)?.providers[0] ?? id
