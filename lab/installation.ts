import { execFile } from 'node:child_process'
import { readdir, readFile, rmdir } from 'node:fs/promises'
import { join } from 'node:path'
import { promisify } from 'node:util'
import type { TestState } from 'busbar/sdk/testing'
import { settingsFrom, until } from 'busbar/sdk/testing'
import type Docker from 'dockerode'
import { EngineClient } from '../plugins/runtime-docker/engine-client.js'
import { liftLimits } from '../plugins/runtime-docker/host/host-limits.js'
import { installationTag } from '../plugins/runtime-docker/host/installation-tag.js'
import { settings } from '../plugins/runtime-docker/settings.js'
import { removeFromEngine } from './engine-cleanup.js'

const execute = promisify(execFile)

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

/** The same, when its id is known; of the engine that it was on. Rules of a network of that engine's own go with it. */
export async function removeInstallationFromEngine(instanceId: string, docker?: Docker): Promise<void> {
  await removeFromEngine(instanceId, docker)
  await removeGroups(`busbar${installationTag(instanceId)}`)
  if (await mayHaveRules(instanceId))
    await liftLimits(new EngineClient(settingsFrom(settings, process.env)), instanceId)
}

/** To look is cheap for root alone. */
async function mayHaveRules(instanceId: string): Promise<boolean> {
  return await execute('iptables-save', ['-t', 'filter']).then(
    ({ stdout }) => stdout.includes(`BUSBAR-${installationTag(instanceId)}-`),
    () => true
  )
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

/** The last process of a container that was removed may end a moment later than that. What a container is in stays, and shows in `leftovers.ts`. */
async function removeGroups(begin: string): Promise<void> {
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
