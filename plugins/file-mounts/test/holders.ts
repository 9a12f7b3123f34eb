import { readdir, readFile, stat } from 'node:fs/promises'
import { join } from 'node:path'
import type Docker from 'dockerode'
import { engine } from '../../deployments/test/deploy-lab.js'

/** What holds the files of an application's containers on the engine. */
export const holdersOf = async (applicationId: string): Promise<Docker.ContainerInfo[]> =>
  await engine.listContainers({
    all: true,
    filters: { label: [`application-id=${applicationId}`, 'busbar-system=file-holder'] }
  })

/** Files below a folder that hold a text. */
export async function filesWith(folder: string, text: string): Promise<string[]> {
  const found: string[] = []
  for (const entry of await readdir(folder, { recursive: true })) {
    const path = join(folder, entry)
    const isFile = await stat(path).then(
      seen => seen.isFile(),
      () => false
    )
    if (isFile && (await readFile(path).catch(() => Buffer.of())).includes(text)) found.push(path)
  }
  return found
}
