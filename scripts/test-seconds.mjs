/**
 * `node scripts/test-seconds.mjs <report of npm test>`: writes down which files take long, for `test-groups.mjs`. A file that
 * is named and has not run, as it is not its turn, keeps what it had.
 */
import { existsSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'

const root = join(import.meta.dirname, '..')
const place = join(import.meta.dirname, 'test-seconds.json')
const least = 12

const [report = ''] = process.argv.slice(2)
const found = [...readFileSync(report, 'utf8').matchAll(/^(?:ok {2}|FAIL) (\S+) {2}.* {2}([\d.]+) s$/gm)]
const before = Object.entries(JSON.parse(readFileSync(place, 'utf8')))
const now = found.map(([, file, time]) => [file, Math.round(Number(time))])
const all = Object.entries(Object.fromEntries([...before, ...now]))
  .filter(([file, time]) => time >= least && existsSync(join(root, file)))
  .sort(([a], [b]) => (a < b ? -1 : 1))
writeFileSync(place, `${JSON.stringify(Object.fromEntries(all), null, 2)}\n`)
