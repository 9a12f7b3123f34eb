import { objectAt } from './config/json.js'

/** Whose configuration a Caddy has. */
type Ownership = 'empty' | 'ours' | 'foreign'

/** What serves nothing is free to take: a Caddy that has just been started, with its admin API and its log set up at most. */
export function ownershipOf(config: unknown, mark: string): Ownership {
  if (config === null || config === undefined) return 'empty'
  const parts = objectAt(config)
  if (parts === undefined) return 'foreign'
  if (parts['@id'] === mark) return 'ours'
  if (parts['@id'] !== undefined) return 'foreign'
  return Object.keys(objectAt(parts, 'apps') ?? {}).length === 0 ? 'empty' : 'foreign'
}
