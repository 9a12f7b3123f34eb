import { execFile } from 'node:child_process'
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { promisify } from 'node:util'
import type { TestState } from 'busbar/sdk/testing'
import { settingsFrom } from 'busbar/sdk/testing'
import { EngineClient } from '../plugins/runtime-docker/engine-client.js'
import { liftLimits } from '../plugins/runtime-docker/host/host-limits.js'
import { installationTag } from '../plugins/runtime-docker/host/installation-tag.js'
import { settings } from '../plugins/runtime-docker/settings.js'
import { removeFromEngine } from './engine-cleanup.js'

const execute = promisify(execFile)

/**
 * Takes away what an installation keeps on the engine as long as it has projects: containers, images, volumes and
 * networks, and its rules in the machine's packet filter. A test ends with projects, which are never deleted.
 */
export async function removeInstallation({ directory }: Pick<TestState, 'directory'>): Promise<void> {
  const instanceId = (
    await readFile(join(directory, 'data', 'runtime-docker', 'instance-id'), 'utf8').catch(() => '')
  ).trim()
  if (instanceId !== '') await removeInstallationFromEngine(instanceId)
}

/** The same, when its id is known. */
export async function removeInstallationFromEngine(instanceId: string): Promise<void> {
  await removeFromEngine(instanceId)
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
