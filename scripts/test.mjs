/**
 * `npm test`: every test file, by tap. Files of a folder share processes (`test-groups.mjs`); files that are named as
 * arguments do not. Options go to tap.
 */
import { spawn } from 'node:child_process'
import { mkdirSync, readdirSync, rmSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { groupsFolder, groupsOf } from './test-groups.mjs'

const root = dirname(dirname(fileURLToPath(import.meta.url)))

/** As `.taprc` names them. */
const isTest = path => /^(?:test|(?:examples\/)?plugins\/[^/]+\/test)\/.*\.test\.ts$/.test(path)

function testFiles() {
  return ['test', 'plugins', 'examples/plugins']
    .flatMap(folder => readdirSync(join(root, folder), { recursive: true }).map(path => join(folder, path)))
    .filter(isTest)
    .sort()
}

/** The program that runs the files of a group; what it is called says which they are. */
function writeGroup(files, at) {
  const [first = ''] = files
  const area = dirname(first)
    .replace(/^plugins\/|\/test$/g, '')
    .replaceAll('/', '-')
  const path = join(groupsFolder, `${area}-${at}.mjs`)
  const list = files.map(file => `  ${JSON.stringify(file)}`).join(',\n')
  writeFileSync(
    join(root, path),
    `import { runGroup } from '../../scripts/test-group.mjs'\n\nrunGroup([\n${list}\n])\n`
  )
  return path
}

function programs() {
  rmSync(join(root, groupsFolder), { recursive: true, force: true })
  mkdirSync(join(root, groupsFolder), { recursive: true })
  return groupsOf(testFiles()).map((files, at) => (files.length === 1 ? files[0] : writeGroup(files, at)))
}

const asked = process.argv.slice(2)
const isNamed = asked.some(argument => !argument.startsWith('-'))
const tap = spawn(
  process.execPath,
  [join(root, 'node_modules/tap/dist/esm/run.mjs'), 'run', ...asked, ...(isNamed ? [] : programs())],
  { cwd: root, stdio: 'inherit' }
)
for (const signal of ['SIGINT', 'SIGTERM']) process.on(signal, () => tap.kill(signal))
tap.on('exit', code => {
  process.exitCode = code ?? 1
})
