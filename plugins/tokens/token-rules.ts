import { type Scope, scopes } from 'busbar/sdk'
import { problems } from './problems.js'

export const expiryChoices: readonly number[] = [1, 7, 14, 30, 60, 90]

/** A token has one scope: of several the widest, which includes the others. */
export function readScope(given: readonly string[] | undefined): Scope {
  const ranks = (given ?? []).map(name => scopes.indexOf(name as Scope))
  const widest = ranks.includes(-1) ? undefined : scopes[Math.max(-1, ...ranks)]
  if (widest === undefined) throw problems.scopeInvalid({ remedy: `the scopes are ${scopes.join(', ')}` })
  return widest
}

/** One of the choices, or null for a token that does not expire. */
export function readExpiry(days: number | null | undefined): number | null {
  if (days === null || days === undefined) return null
  if (!expiryChoices.includes(days))
    throw problems.expiryInvalid({
      remedy: `use ${expiryChoices.join(', ')}, or null for a token that does not expire`
    })
  return days
}

export function readName(given: string): string {
  const name = given.trim()
  if (name === '') throw problems.nameMissing()
  return name
}
