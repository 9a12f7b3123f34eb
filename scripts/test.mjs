/**
 * `npm test`: every test file, by tap, or those below the folders that are named as arguments. Files share processes
 * (`test-groups.mjs`); files that are named do not. Of some families a run of everything takes a sample (`rotating-files.mjs`);
 * `--rotating` runs these families alone. With `TEST_MINUTES` no file is begun after so many; which are left out then differs by the
 * commit, and those about the whole come first. Other options go to tap.
 */
import { spawn } from 'node:child_process'
import { mkdirSync, readdirSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { basename, dirname, join, normalize } from 'node:path'
import { fileURLToPath } from 'node:url'
import { ofFamilies, withoutThoseOfOtherCommits } from './rotating-files.mjs'
import { commit } from './rotating-sample.mjs'
import { groupsFolder, groupsOf, inTurns } from './test-groups.mjs'

const root = dirname(dirname(fileURLToPath(import.meta.url)))

/** As `.taprc` names them. */
const isTest = path => /^(?:test|(?:examples\/)?plugins\/[^/]+\/test)\/.*\.test\.ts$/.test(path)

function testFiles() {
  return ['test', 'plugins', 'examples/plugins']
    .flatMap(folder => readdirSync(join(root, folder), { recursive: true }).map(path => join(folder, path)))
    .filter(isTest)
    .sort()
}

/** The program that runs the files of a group; what it is called says which they are. tap runs programs in the order of their names. */
function writeGroup(files, at) {
  const name = files.length === 1 ? basename(files[0], '.test.ts') : `${files.length}-files`
  const path = join(groupsFolder, `${String(at).padStart(3, '0')}-${name}.mjs`)
  const list = files.map(file => `  ${JSON.stringify(file)}`).join(',\n')
  writeFileSync(
    join(root, path),
    `import { runGroup } from '../../scripts/test-group.mjs'\n\nrunGroup([\n${list}\n])\n`
  )
  return path
}

/** `folders`: none for all. */
function programs(folders) {
  rmSync(join(root, groupsFolder), { recursive: true, force: true })
  // Of a run before (`lab/installations.ts`).
  rmSync(join(root, '.lab/installations'), { force: true })
  mkdirSync(join(root, groupsFolder), { recursive: true })
  const below = folders.map(folder => join(normalize(folder), '/'))
  const all = isRotating ? ofFamilies(testFiles()) : testFiles()
  const files =
    below.length === 0
      ? withoutThoseOfOtherCommits(all)
      : all.filter(file => below.some(folder => file.startsWith(folder)))
  const groups = groupsOf(files)
  return (minutes === undefined ? groups : inTurns(groups, commit())).map(writeGroup)
}

const isFolder = argument =>
  !argument.startsWith('-') &&
  statSync(join(root, argument), { throwIfNoEntry: false })?.isDirectory() === true

const minutes = process.env.TEST_MINUTES
const asked = process.argv.slice(2).filter(argument => argument !== '--rotating')
const isRotating = process.argv.includes('--rotating')
const folders = asked.filter(isFolder)
const others = asked.filter(argument => !isFolder(argument))
const isAll = folders.length === 0 && others.every(argument => argument.startsWith('-'))
const tap = spawn(
  process.execPath,
  [
    join(root, 'node_modules/tap/dist/esm/run.mjs'),
    'run',
    ...others,
    ...(isAll || folders.length > 0 ? programs(folders) : [])
  ],
  {
    cwd: root,
    stdio: 'inherit',
    env: {
      ...process.env,
      ...(minutes !== undefined && { TEST_UNTIL: String(Date.now() + Number(minutes) * 60_000) })
    }
  }
)
for (const signal of ['SIGINT', 'SIGTERM']) process.on(signal, () => tap.kill(signal))
tap.on('exit', code => {
  process.exitCode = code ?? 1
})
