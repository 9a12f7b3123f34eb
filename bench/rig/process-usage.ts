import { readFileSync } from 'node:fs'

/** Ticks in a second in /proc, on every Linux there is. */
const ticksPerSecond = 100

/** The CPU time a process has used so far, in all its threads, in microseconds. */
export function cpuMicros (pid: number): number {
  const stat = readFileSync(`/proc/${pid}/stat`, 'utf8')
  // The name stands in parentheses and may hold anything; the fields after it are numbers.
  const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ')
  const [user, system] = [fields[11], fields[12]].map(Number)
  return ((user ?? 0) + (system ?? 0)) * 1_000_000 / ticksPerSecond
}

export interface Memory { readonly residentMib: number, readonly proportionalMib: number }

/** What a process keeps in memory; `proportional` shares what several processes use among them. */
export function memoryOf (pid: number): Memory {
  const rollup = readFileSync(`/proc/${pid}/smaps_rollup`, 'utf8')
  const mebibytes = (name: string): number => Number(new RegExp(`^${name}:\\s+(\\d+)`, 'm').exec(rollup)?.[1]) / 1024
  return { residentMib: mebibytes('Rss'), proportionalMib: mebibytes('Pss') }
}
