import { existsSync, readdirSync } from 'node:fs'
import { join } from 'node:path'
import type { PublishedTable } from 'busbar/sdk'

/** What each built-in plugin publishes, by its id and the name of the export in its `api.ts`. */
export async function publishedTables(root: string): Promise<Map<string, Map<string, PublishedTable>>> {
  const found = new Map<string, Map<string, PublishedTable>>()
  for (const id of readdirSync(join(root, 'plugins'))) {
    if (!existsSync(join(root, 'plugins', id, 'api.ts'))) continue
    const api = (await import(`busbar/api/${id}`)) as Record<string, unknown>
    const tables = Object.entries(api).flatMap(
      ([name, value]): Array<[string, PublishedTable]> => (isTable(value) ? [[name, value]] : [])
    )
    found.set(id, new Map(tables))
  }
  return found
}

const isTable = (value: unknown): value is PublishedTable =>
  typeof value === 'object' && value !== null && 'kind' in value && value.kind === 'table'
