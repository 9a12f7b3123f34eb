import { randomUUID } from 'node:crypto'
import { readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'

/** The id by which this installation knows its configuration in a Caddy: a file of the plugin's, written once. */
export async function installationId(directory: string): Promise<string> {
  const path = join(directory, 'installation-id')
  try {
    await writeFile(path, `${randomUUID()}\n`, { flag: 'wx' })
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error
  }
  const id = (await readFile(path, 'utf8')).trim()
  if (!/^[0-9a-f-]{36}$/.test(id)) throw new Error(`${path} holds no id: remove it`)
  return id
}
