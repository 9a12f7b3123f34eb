import { readFileSync } from 'node:fs'
import type { Scope } from 'busbar/sdk'

/** One operation of the contract, which was written before the platform and knows nothing of its code. */
export interface ContractOperation {
  readonly method: string
  readonly path: string
  /** The operation's name; extensions name theirs where they are declared. */
  readonly id?: string
  readonly group: string
  readonly public?: boolean
  /** The narrowest scope; null: no token reaches it. */
  readonly scope: Scope | null
  readonly session: boolean
  readonly admin: boolean
  readonly pinned?: true | 'filtered' | 'never'
  readonly summary?: string
  /** By status; a word such as `sse` where there is no JSON. */
  readonly responses?: Readonly<Record<string, ContractShape>>
  readonly body?: ContractShape
  /** By name, with a `!` after it when it is required. */
  readonly query?: Readonly<Record<string, string>>
}

/** The name of a type (`uuid|null`, `[@Deployment]`, …) or fields of an object. */
export type ContractShape = string | { readonly [field: string]: ContractShape }

export interface ContractChannel {
  readonly name: string
  readonly who: string
  readonly pinned: true | 'never' | 'no part'
}

interface Contract {
  readonly operations: readonly ContractOperation[]
  readonly channels: readonly ContractChannel[]
  readonly schemas: Readonly<Record<string, ContractShape>>
}

const contract = JSON.parse(readFileSync(new URL('./api.json', import.meta.url), 'utf8')) as Contract

export const operations: ReadonlyMap<string, ContractOperation> = new Map(
  contract.operations.map(operation => [`${operation.method} ${operation.path}`, operation])
)
export const channels: ReadonlyMap<string, ContractChannel> = new Map(
  contract.channels.map(channel => [`channel ${channel.name}`, channel])
)
export const schemas = contract.schemas
