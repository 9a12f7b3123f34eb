/**
 * `npm run bench`: measures the platform against the goals of its design and prints one table for each.
 * `npm run bench -- toggles` measures only what is named. A goal that is missed is no error.
 */
import { loadavg } from 'node:os'
import { backups } from './backups.js'
import { bus } from './bus.js'
import { deploys } from './deploys.js'
import { disk } from './disk.js'
import { engines } from './engines.js'
import { growth } from './growth.js'
import { lists } from './lists.js'
import { logins } from './logins.js'
import { logs } from './logs.js'
import { proxy } from './proxy.js'
import { requests } from './requests.js'
import { removeLeftovers, removeOnSignals } from './rig/leftovers.js'
import { start } from './start.js'
import { printTable } from './table.js'
import { toggles } from './toggles.js'
import { traces } from './traces.js'

const benchmarks = [
  requests,
  lists,
  bus,
  toggles,
  start,
  logins,
  logs,
  deploys,
  proxy,
  traces,
  engines,
  disk,
  backups,
  growth
]

const wanted = process.argv.slice(2)
removeOnSignals()
await removeLeftovers()
console.log(
  'The machine is noisy: only the ratios count. Each is the median of rounds in which both sides ran in turn.'
)
console.log(
  `Load of the machine at the start: ${loadavg()
    .map(value => value.toFixed(1))
    .join(' ')}`
)
for (const { name, title, run } of benchmarks) {
  if (wanted.length > 0 && !wanted.includes(name)) continue
  const startedAt = performance.now()
  try {
    printTable(title, await run())
  } catch (error) {
    console.error(`\n${title}\n  could not be measured:`, error)
  }
  console.log(`  (${name}, ${Math.round((performance.now() - startedAt) / 1000)} s)`)
}
process.exit(0)
