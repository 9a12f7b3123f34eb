/**
 * Which test files share a process. A process that boots a platform for the first time pays seconds for loading and
 * compiling, of which a second platform pays a tenth.
 */
import { createHash } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'

/** Of a quiet machine. */
const seconds = JSON.parse(readFileSync(fileURLToPath(new URL('test-seconds.json', import.meta.url)), 'utf8'))

/** Of these folders the files may share: they test through the platform's door, and leave the process as it was. */
const sharing =
  /^(?:plugins\/[^/]+\/test|test\/(?:access|auth|bus|cache|clock|config|contract|database|declarations|events|frames|http|jobs|kernel|lab|limits|log|plugins|resources|schedules|schemas|sdk|secrets|services|structure))\//

/** Those that change what all of a process have, or measure it. */
const alone = new Set([
  'plugins/builds/test/hostile.test.ts',
  'plugins/deployments/test/loud-build.test.ts',
  'plugins/logs/test/slow-readers.test.ts',
  'plugins/proxy-caddy/test/newest-process.test.ts',
  'plugins/proxy-caddy/test/newest-traffic.test.ts',
  'test/http/connections.test.ts',
  'test/http/fuzz.test.ts',
  'test/http/streams.test.ts',
  'test/frames/process-end.test.ts',
  'test/kernel/off-and-on.test.ts',
  'test/kernel/shutdown.test.ts',
  'test/kernel/statements.test.ts',
  'test/kernel/statistics.test.ts',
  'test/kernel/stopping.test.ts',
  'test/plugins/faulty.test.ts',
  'test/plugins/hanging.test.ts',
  'test/plugins/hostile.test.ts',
  'test/plugins/left-behind.test.ts',
  'test/plugins/reload.test.ts',
  'test/plugins/start-marks.test.ts',
  'test/plugins/third-party.test.ts'
])

/** Of plugins, those that show what the platform as a whole stands. */
const ofTheWhole = new Set([
  'plugins/logs/test/burst.test.ts',
  'plugins/logs/test/slow-readers.test.ts',
  'plugins/platform-backups/test/restore.test.ts',
  'plugins/terminal/test/pressure.test.ts'
])

/** Of those that are not named in `test-seconds.json`, which is made of the report of a run (`test-seconds.mjs`). */
const usualSeconds = 4
const secondsOf = file => seconds[file] ?? usualSeconds

/** Small enough that none is at work alone at the end, and that what a process keeps of its files does not add up. */
const groupSeconds = 100
const groupSize = 25

/** A platform in a process that has used an engine looks there for what is left of it; the others need not. */
const poolOf = file =>
  /^plugins\/(?:backups|builds|databases|deployments|file-mounts|logs|metrics|runtime-docker|terminal|volumes)\//.test(
    file
  )
    ? 'engine'
    : 'platform'

/**
 * All files, each in one group. Groups take about as long; those that take longest come first.
 * @param {readonly string[]} files
 * @returns {readonly (readonly string[])[]}
 */
export function groupsOf(files) {
  const pools = new Map()
  for (const file of files) {
    const isAlone = !sharing.test(file) || alone.has(file)
    const pool = isAlone ? file : poolOf(file)
    pools.set(pool, [...(pools.get(pool) ?? []), file])
  }
  return [...pools.values()].flatMap(divided).sort((a, b) => secondsOfAll(b) - secondsOfAll(a))
}

/**
 * For a machine that may be too slow for all of them: those with files about the whole come first, and of the others the seed says
 * which, so that over many seeds none is always the last.
 * @param {readonly (readonly string[])[]} groups
 * @param {string} seed
 * @returns {readonly (readonly string[])[]}
 */
export function inTurns(groups, seed) {
  const rank = ([first]) => createHash('sha256').update(`${seed}\n${first}`).digest('hex')
  const isOfAll = files => files.some(file => file.startsWith('test/') || ofTheWhole.has(file))
  return groups.toSorted((a, b) => Number(isOfAll(b)) - Number(isOfAll(a)) || (rank(a) < rank(b) ? -1 : 1))
}

const secondsOfAll = files => files.reduce((sum, file) => sum + secondsOf(file), 0)

/** Into as few groups as may be, of about the same time. */
function divided(files) {
  const count = Math.ceil(Math.max(files.length / groupSize, secondsOfAll(files) / groupSeconds))
  const groups = Array.from({ length: count }, () => [])
  const rooms = () => groups.filter(group => group.length < groupSize)
  for (const file of files.toSorted((a, b) => secondsOf(b) - secondsOf(a)))
    rooms()
      .reduce((least, group) => (secondsOfAll(group) < secondsOfAll(least) ? group : least))
      .push(file)
  return groups.map(group => group.sort()).filter(group => group.length > 0)
}

/** Where the programs of groups are written, under the root. */
export const groupsFolder = '.lab/groups'

/** @param {string | undefined} program */
export const isGroup = program => program !== undefined && /\.lab\/groups\/[^/]+\.mjs$/.test(program)
