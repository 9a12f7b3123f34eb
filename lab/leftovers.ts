/**
 * What tests have left on this machine. It compares two looks, as an engine or a temporary folder may hold what is
 * none of the tests' business:
 *
 *     alias leftovers='node --import=tsx --conditions=busbar-source lab/leftovers.ts'
 *     leftovers save before.json
 *     npm test
 *     leftovers compare before.json                            # LEFT: network busbar-…
 *     leftovers each plugins/deployments/test/*.test.ts        # runs each alone and says what it left
 *
 * The status of `compare` is 3 when some of it is certainly that of tests, of the installations that they have taken away (`installations.ts`);
 * that of `each` is 1 when a file failed.
 */
import { execFile, spawnSync } from 'node:child_process'
import { readdir, readFile, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { promisify } from 'node:util'
import Docker from 'dockerode'
import { instanceLabel } from '../plugins/runtime-docker/labels.js'
import { listTestDatabases } from '../sdk/testing/cluster.js'
import { controlGroups } from './installation.js'
import { leftByTests, readInstallations } from './installations.js'
import { withoutKept } from './kept-images.js'

const execute = promisify(execFile)

/** What a program of the tools keeps for its next run. */
const kept = /^(?:tsx-|node-compile-cache|v8-compile-cache|node-coverage|\.)/

/** One line for each thing: `container 1f2e… /web`. */
type Look = readonly string[]

async function look(): Promise<Look> {
  const parts = [
    onEngine(),
    interfaces(),
    packetRules(),
    groups(),
    namespaces(),
    folders(),
    processes(),
    databases()
  ]
  return (await Promise.all(parts)).flat()
}

async function onEngine(): Promise<string[]> {
  const docker = new Docker()
  const answers = await docker.ping().then(
    () => true,
    () => false
  )
  if (!answers) return []
  const containers = await docker.listContainers({ all: true })
  const networks = await docker.listNetworks()
  const { Volumes: volumes } = await docker.listVolumes()
  const images = withoutKept(await docker.listImages({ all: true }))
  const ownerOf = (labels: Readonly<Record<string, string>> | null | undefined): string => {
    const id = labels?.[instanceLabel]
    return id === undefined ? '' : ` of the installation ${id}`
  }
  return [
    ...containers.map(
      ({ Id, Names, Image, Labels }) =>
        `container ${Id.slice(0, 12)} ${Names.join(' ')} of ${Image}${ownerOf(Labels)}`
    ),
    ...networks.map(({ Id, Name, Labels }) => `network ${Id.slice(0, 12)} ${Name}${ownerOf(Labels)}`),
    ...(volumes ?? []).map(({ Name, Labels }) => `volume ${Name}${ownerOf(Labels)}`),
    ...images.map(
      ({ Id, RepoTags, Labels }) =>
        `image ${Id.slice(7, 19)} ${(RepoTags ?? []).join(' ')} ${JSON.stringify(Labels ?? {})}`
    )
  ]
}

/** Bridges of project networks, and of the engines that tests start. Not from /sys, which may show another network. */
const interfaces = async (): Promise<string[]> =>
  (await execute('ip', ['-o', 'link']).catch(() => ({ stdout: '' }))).stdout
    .split('\n')
    .flatMap(line => /^\d+: ([^:@]+)/.exec(line)?.[1] ?? [])
    .filter(name => /^(?:bb|br-|veth)/.test(name))
    .map(name => `interface ${name}`)

async function packetRules(): Promise<string[]> {
  const rules = await Promise.all(
    ['iptables-save', 'ip6tables-save'].map(
      async program =>
        await execute(program).then(
          ({ stdout }) =>
            stdout
              .split('\n')
              .filter(line => line.includes('BUSBAR'))
              .map(line => `${program.replace('-save', '')} ${line.replace(/ *\[\d+:\d+\]$/, '')}`),
          () => []
        )
    )
  )
  return rules.flat()
}

const groups = async (): Promise<string[]> =>
  (await controlGroups('busbar')).map(path => `control group ${path}`)

const namespaces = async (): Promise<string[]> =>
  (await readdir('/run/netns').catch(() => [])).map(name => `network namespace ${name}`)

const folders = async (): Promise<string[]> =>
  (await readdir(tmpdir())).filter(name => !kept.test(name)).map(name => `in ${tmpdir()} ${name}`)

/** Programs that work in a folder of the tests; the test cluster is not one of them, nor is this one. */
async function processes(): Promise<string[]> {
  const begins = join(tmpdir(), 'busbar-')
  const pids = (await readdir('/proc').catch(() => [])).filter(
    name => /^\d+$/.test(name) && name !== String(process.pid)
  )
  const found = await Promise.all(
    pids.map(async pid => {
      const argv = (await readFile(`/proc/${pid}/cmdline`, 'utf8').catch(() => '')).replaceAll('\0', ' ')
      return argv.includes(begins) ? [`process ${pid} ${argv.slice(0, 120)}`] : []
    })
  )
  return found.flat()
}

const databases = async (): Promise<string[]> => (await listTestDatabases()).map(name => `database ${name}`)

/** The engine takes interfaces and networks away some time after it has said so. */
const settleMs = 5_000

async function printNew(before: Look, title = ''): Promise<Look> {
  const known = new Set(before)
  const end = performance.now() + settleMs
  let left: Look
  do {
    left = (await look()).filter(line => !known.has(line))
    if (left.length > 0) await sleep(250)
  } while (left.length > 0 && performance.now() < end)
  for (const line of left) console.log(`LEFT: ${title}${line}`)
  return left
}

const [mode, ...names] = process.argv.slice(2)
const [file] = names
if (mode === 'save' && file !== undefined) {
  await writeFile(file, JSON.stringify(await look(), null, 2))
} else if (mode === 'compare' && file !== undefined) {
  const left = await printNew(JSON.parse(await readFile(file, 'utf8')) as Look)
  if (leftByTests(left, await readInstallations()).length > 0) process.exitCode = 3
} else if (mode === 'each') {
  for (const name of names) {
    const before = await look()
    const { status } = spawnSync('npx', ['tap', 'run', '--jobs=1', name], { stdio: 'inherit' })
    if (status !== 0) process.exitCode = 1
    await printNew(before, `${name}: `)
  }
} else {
  console.error('leftovers.ts save FILE | compare FILE | each TEST-FILE...')
  process.exit(2)
}
