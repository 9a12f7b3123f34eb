import type { ControlGroups } from './control-groups.js'

/** What the machine is and has, as the programs of the machine tell. */
export interface MachineFacts {
  /** Of its control groups. */
  readonly version: 1 | 2
  readonly memoryBytes: number
  /** Processes and threads that it can have: the lesser of `kernel.pid_max` and `kernel.threads-max`. */
  readonly processes: number
  /** Memory in use, by the name of the group. */
  readonly used: ReadonlyMap<string, number>
}

export interface GroupLimit {
  /** A name of `ControlGroups`. */
  readonly group: string
  readonly processes: number
  /** Undefined: what the group has stays as it is. */
  readonly memoryBytes: number | 'unlimited' | undefined
}

const mebibyte = 2 ** 20
/** For the machine, its engine, PostgreSQL and the platform: a tenth, but no less than this where there is more than twice as much. */
const leastReserveBytes = 512 * mebibyte
const reserveShare = 0.1
const processShare = 0.75

/** Of what all containers may have, for each project: no project takes everything from the others. */
const projectProcessShare = 0.5
const projectMemoryShare = 0.75

/**
 * What the containers of an installation may use of their machine, all of them, and those of each project. While it has one
 * project only, nobody else is to be left some of the memory. A limit below what is in use would end programs: it waits until less is.
 */
export function groupLimits(
  groups: ControlGroups,
  projects: readonly string[],
  { memoryBytes, processes, used }: MachineFacts
): readonly GroupLimit[] {
  const reserve = Math.min(Math.max(leastReserveBytes, memoryBytes * reserveShare), memoryBytes / 2)
  const all = {
    group: groups.all,
    processes: Math.floor(processes * processShare),
    memoryBytes: wholePages(memoryBytes - reserve)
  }
  const projectMemory = wholePages(all.memoryBytes * projectMemoryShare)
  return [
    all,
    ...projects.map(id => {
      const group = groups.ofProject(id)
      const isBelow = (used.get(group) ?? 0) < projectMemory
      return {
        group,
        processes: Math.floor(all.processes * projectProcessShare),
        memoryBytes: projects.length === 1 ? ('unlimited' as const) : isBelow ? projectMemory : undefined
      }
    })
  ]
}

/** How groups of projects are called, as UUIDs without dashes; those of containers have longer names. */
export const projectName = /^[0-9a-f]{32}$/

const wholePages = (bytes: number): number => Math.floor(bytes / mebibyte) * mebibyte
