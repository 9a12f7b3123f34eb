import findMyWay from 'find-my-way'
import { shapeOf } from '../declarations/declared-parts.js'
import type { RouteRecord } from '../declarations/records.js'
import type { RequestContext } from './request-context.js'

/** What requests are given to: the instance of a running plugin. */
export interface RequestTarget {
  /** How many it has under way. */
  readonly inFlight: number
  /** Runs an admitted request. */
  dispatch(context: RequestContext): void
  /** Waits with one that is still being decided about. */
  awaiting(decision: Promise<void>): Promise<void>
  expireOverdue(now: number): void
}

/** A declared route and the instance that serves it; no instance while its plugin is off. */
export interface TableEntry {
  readonly record: RouteRecord
  readonly instance: RequestTarget | undefined
}

export interface Match {
  readonly entry: TableEntry
  readonly params: Readonly<Record<string, string | undefined>>
}

/**
 * (method, path) → who serves it. A table never changes: turning a plugin on or off builds another and
 * swaps it in by one assignment, so a request sees one table or the other and never half of one.
 */
export class RouteTable {
  // 512: an id that is too long is answered like any other malformed id instead of as an unknown path.
  readonly #router = findMyWay({ maxParamLength: 512 })
  readonly entries: readonly TableEntry[]
  readonly instances: ReadonlySet<RequestTarget>

  constructor(entries: readonly TableEntry[]) {
    this.entries = entries
    this.instances = new Set(
      entries.map(({ instance }) => instance).filter(instance => instance !== undefined)
    )
    for (const entry of entries) this.#router.on(entry.record.method, entry.record.url, unused, entry)
  }

  /** The methods by which a path is served, or would be if its plugin were on; in their usual order. */
  methodsOf(path: string): readonly string[] {
    return methods.filter(method => this.find(method, path) !== undefined)
  }

  find(method: string, path: string): Match | undefined {
    // A parameter is never empty: what ends with a slash is another address.
    if (path.endsWith('/') && path !== '/') return undefined
    const found = this.#router.find(method as 'GET', path)
    return found === null ? undefined : { entry: found.store as TableEntry, params: found.params }
  }
}

const methods = ['GET', 'POST', 'PUT', 'PATCH', 'DELETE'] as const

const unused = (): void => {}

/**
 * Routes that two plugins both claim. One plugin's static segment against another's parameter counts:
 * turning the first off would silently hand its path to the second.
 */
export function findConflicts(candidate: readonly RouteRecord[], others: readonly RouteRecord[]): string[] {
  const conflicts: string[] = []
  for (const mine of candidate) {
    for (const theirs of others) {
      if (mine.method !== theirs.method || mine.plugin === theirs.plugin) continue
      if (shapeOf(mine.url) === shapeOf(theirs.url))
        conflicts.push(`${mine.method} ${mine.url} is already served by "${theirs.plugin}"`)
      else if (overlap(mine.url, theirs.url))
        conflicts.push(
          `${mine.method} ${mine.url} is hidden by, or hides, ${theirs.url} of "${theirs.plugin}"`
        )
    }
  }
  return conflicts
}

/** Whether some path matches both: the same number of segments, each equal or a parameter on one side. */
function overlap(a: string, b: string): boolean {
  const left = a.split('/')
  const right = b.split('/')
  return (
    left.length === right.length &&
    left.every((segment, at) => {
      const other = right[at] ?? ''
      return segment === other || segment.startsWith(':') || other.startsWith(':')
    })
  )
}
