import { createHash } from 'node:crypto'
import { readdir, readFile } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { createDatabase, type TestDatabase } from './cluster.js'

const root = join(dirname(fileURLToPath(import.meta.url)), '..', '..')

/** A database in which the platform's own migrations have run: copied from a template, not migrated anew. */
export async function createMigratedDatabase(
  boot: (url: string) => Promise<{ close(): Promise<void> }>
): Promise<TestDatabase> {
  const key = await fingerprint()
  return await createDatabase({
    template: {
      key,
      prepare: async url => {
        await (await boot(url)).close()
      }
    }
  })
}

/** Changes whenever a migration does. */
async function fingerprint(): Promise<string> {
  const plugins = (await readdir(join(root, 'plugins'))).map(name =>
    join(root, 'plugins', name, 'migrations')
  )
  const folders = await Promise.all(
    plugins.map(async folder => (await readdir(folder).catch(() => [])).map(name => join(folder, name)))
  )
  const own = ['.ts', '.js'].map(ending => join(root, `core/kernel-schema${ending}`))
  const hash = createHash('sha256')
  for (const file of [...own, ...folders.flat().sort()]) hash.update(await readFile(file).catch(() => ''))
  return hash.digest('hex')
}
