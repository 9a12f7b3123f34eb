import { appendFile, mkdir, readdir, readFile, rmdir } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import type { TestState } from 'busbar/sdk/testing'
import { settingsFrom, until } from 'busbar/sdk/testing'
import type Docker from 'dockerode'
import { pino } from 'pino'
import { createExec } from '../core/exec/exec.js'
import { EngineClient } from '../plugins/runtime-docker/engine-client.js'
import { liftLimits, liftRules } from '../plugins/runtime-docker/host/host-limits.js'
import { installationTag } from '../plugins/runtime-docker/host/installation-tag.js'
import { localTools } from '../plugins/runtime-docker/host/local-tools.js'
import { settings } from '../plugins/runtime-docker/settings.js'
import { removeFromEngine } from './engine-cleanup.js'
import { installationsFile } from './installations.js'

const tools = localTools(createExec({ log: pino({ level: 'silent' }) }))

/**
 * Takes away what an installation keeps on the engine as long as it has projects: containers, images, volumes and
 * networks, its rules in the machine's packet filter, and its control groups. A test ends with projects, which are never deleted.
 */
export async function removeInstallation({ directory }: Pick<TestState, 'directory'>): Promise<void> {
  const instanceId = (
    await readFile(join(directory, 'data', 'runtime-docker', 'instance-id'), 'utf8').catch(() => '')
  ).trim()
  if (instanceId !== '') await removeInstallationFromEngine(instanceId)
}

/** Those that tests of this process have started beside that of the machine, and may have killed. */
export const secondEngines = new Set<Docker>()

/** The same, when its id is known; of `docker`, or of every engine that this process knows. */
export async function removeInstallationFromEngine(instanceId: string, docker?: Docker): Promise<void> {
  await mkdir(dirname(installationsFile), { recursive: true })
  await appendFile(installationsFile, `${instanceId}\n`)
  await removeFromEngine(instanceId, docker)
  if (docker === undefined) for (const one of secondEngines) await removeIfItAnswers(instanceId, one)
  await removeGroupsOf(instanceId)
  await removeRules(instanceId)
}

async function removeIfItAnswers(instanceId: string, docker: Docker): Promise<void> {
  const answers = await docker.ping().then(
    () => true,
    () => false
  )
  // What is on one that was killed goes when that is closed.
  if (answers) await removeFromEngine(instanceId, docker)
}

/**
 * Those in the packet filter of this machine. Who may look there changes it by the same programs; the others ask the engine, which
 * takes a container. Those of a network of a second engine's own go with that.
 */
async function removeRules(instanceId: string): Promise<void> {
  const seen = await tools.run(['iptables-save', '-t', 'filter']).catch(() => undefined)
  if (seen === undefined || seen.code !== 0)
    await liftLimits(new EngineClient(settingsFrom(settings, process.env)), instanceId)
  else if (seen.output.includes(`BUSBAR-${installationTag(instanceId)}-`)) await liftRules(tools, instanceId)
}

const groupsMs = 10_000
const hierarchies = '/sys/fs/cgroup'

/** Directories of control groups whose names begin so. An init system takes its own away by itself. */
export async function controlGroups(begin: string): Promise<readonly string[]> {
  const levels = await readdir(hierarchies, { withFileTypes: true }).catch(() => [])
  const parents = [
    hierarchies,
    ...levels.filter(one => one.isDirectory()).map(({ name }) => join(hierarchies, name))
  ]
  const found = await Promise.all(
    parents.map(async parent =>
      (await readdir(parent).catch(() => []))
        .filter(name => name.startsWith(begin) && !name.endsWith('.slice'))
        .map(name => join(parent, name))
    )
  )
  return found.flat()
}

/**
 * The control groups of an installation. The last process of a container that was removed may end a moment later than that. What a
 * container is in stays, and shows in `leftovers.ts`.
 */
export async function removeGroupsOf(instanceId: string): Promise<void> {
  const begin = `busbar${installationTag(instanceId)}`
  const areGone = async (): Promise<boolean> => {
    for (const group of await controlGroups(begin)) await removeGroup(group)
    return (await controlGroups(begin)).length === 0
  }
  await until(areGone, 'the control groups are empty', groupsMs).catch(() => undefined)
}

/** With the groups of its projects, unless there is a container in them. */
async function removeGroup(path: string): Promise<void> {
  for (const one of await readdir(path, { withFileTypes: true }).catch(() => []))
    if (one.isDirectory()) await rmdir(join(path, one.name)).catch(() => undefined)
  await rmdir(path).catch(() => undefined)
}
