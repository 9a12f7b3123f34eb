import type { DirectSettings } from './settings.js'

/** At most so many ports of the range are tried before any free one is taken. */
const maxTries = 64
/** The machine chooses a free port. */
export const anyPort = 0
/** How often it is asked for another, where it chose one that was in use before. */
const anyPortTries = 4

/** What is known of ports. Those that are in neither part were never in use. */
export interface PortHistory {
  readonly held: ReadonlySet<number>
  /** When each was given back, the one that has been free longest first. */
  readonly released: ReadonlyMap<number, Date>
}

/**
 * The ports to try for a new application, in turn. What a browser has stored for an address (service workers, storage,
 * caches) stays when the application there is deleted, and would rule the next one. So first come those that were never
 * in use, the lowest first, then those that have been free longest.
 */
export function portsToTry(
  { firstPort, lastPort, isRangeOnly }: DirectSettings,
  { held, released }: PortHistory
): number[] {
  const ports: number[] = []
  for (let port = firstPort; port <= lastPort && ports.length < maxTries; port += 1)
    if (!held.has(port) && !released.has(port)) ports.push(port)
  for (const port of released.keys()) {
    if (ports.length >= maxTries) break
    if (port >= firstPort && port <= lastPort && !held.has(port)) ports.push(port)
  }
  return isRangeOnly ? ports : [...ports, ...Array<number>(anyPortTries).fill(anyPort)]
}
