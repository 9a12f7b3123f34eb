import { readdir, readFile } from 'node:fs/promises'
import { join } from 'node:path'

/** Where the sample applications are; npm runs scripts in the folder of package.json. */
export const samplesFolder = join(process.cwd(), 'examples/apps')

/** The files of a sample application by their paths, as its repository holds them. */
export async function readSample(name: string): Promise<Record<string, string>> {
  const folder = join(samplesFolder, name)
  const entries = await readdir(folder, { recursive: true, withFileTypes: true })
  const files = entries.filter(entry => entry.isFile()).map(entry => join(entry.parentPath, entry.name))
  return Object.fromEntries(
    await Promise.all(
      files.map(async file => [file.slice(folder.length + 1), await readFile(file, 'utf8')] as const)
    )
  )
}
