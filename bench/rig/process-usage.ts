import { readdirSync, readFileSync } from 'node:fs'

/** The CPU time a process has used so far, in all threads it has now, in microseconds. The clock of /proc/<pid>/stat knows hundredths of a second only. */
export function cpuMicros(pid: number): number {
  const nanoseconds = readdirSync(`/proc/${pid}/task`).map(thread =>
    Number(readFileSync(`/proc/${pid}/task/${thread}/schedstat`, 'utf8').split(' ', 1)[0])
  )
  return nanoseconds.reduce((sum, one) => sum + one, 0) / 1000
}

interface Memory {
  readonly residentMib: number
  readonly proportionalMib: number
}

/** What a process keeps in memory; `proportional` shares what several processes use among them. */
export function memoryOf(pid: number): Memory {
  const rollup = readFileSync(`/proc/${pid}/smaps_rollup`, 'utf8')
  const lines = rollup.split('\n')
  // `Rss:   98304 kB`
  const mebibytes = (name: string): number =>
    Number.parseInt(lines.find(line => line.startsWith(`${name}:`))?.slice(name.length + 1) ?? '', 10) / 1024
  return { residentMib: mebibytes('Rss'), proportionalMib: mebibytes('Pss') }
}
