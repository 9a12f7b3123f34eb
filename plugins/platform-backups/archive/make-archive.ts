import type { BulkConnection, Installation } from 'busbar/sdk'
import { encryptBytes } from 'busbar/sdk/age'
import type { Table } from '../database/catalog.js'
import { withSnapshot } from '../database/snapshot.js'
import { addFiles, findFiles } from '../files/data-files.js'
import { type AddPart, writeArchive } from './archive-writer.js'
import { formatName, formatVersion, type Manifest, type PartFacts, type TablePart } from './manifest.js'

interface ArchiveRequest {
  /** A UUID. */
  readonly id: string
  readonly file: string
  readonly recipients: readonly string[]
  readonly release: string
  readonly at: Date
  readonly signal: AbortSignal
  /** Told of each step, in words. */
  readonly say: (message: string) => void
}

/** What is in an archive that was made. */
interface MadeArchive {
  readonly bytes: number
  readonly tables: number
  readonly files: number
  readonly hasKeys: boolean
  readonly leftOut: readonly string[]
}

/** Writes all of the installation to a file: the database as it is at one moment, and then files and keys. */
export async function makeArchive(
  installation: Installation,
  connection: BulkConnection,
  request: ArchiveRequest
): Promise<MadeArchive> {
  const { id, file, recipients, release, at, signal, say } = request
  return await withSnapshot(
    { connection, schemas: async asked => await installation.schemas(asked) },
    async ({ catalog, leftOut, postgres, rows }) => {
      say(
        `the database has ${catalog.tables.length} tables in ${catalog.schemas.length} schemas: ${catalog.schemas.join(', ')}`
      )
      const found = await findFiles(installation.directory)
      const outside = installation.pluginFolders.map(
        folder => `the plugins in ${folder}, which BUSBAR_PLUGINS names`
      )
      const left = [...leftOut, ...found.leftOut, ...outside]
      let made: Manifest | undefined
      const bytes = await writeArchive({ file, recipients, modifiedAt: at, signal }, async add => {
        const tables: TablePart[] = []
        for (const table of catalog.tables) {
          signal.throwIfAborted()
          const part = await addTable(table, tables.length, rows, add)
          if (part !== null) tables.push(part)
        }
        say(`${tables.length} tables are written, ${megabytes(tables)} MB`)
        const files = await addFiles(installation.directory, found.files, add)
        const keys = await addKeys(installation, recipients, add)
        made = {
          format: formatName,
          version: formatVersion,
          id,
          created_at: at.toISOString(),
          release,
          postgres,
          variables: installation.variables(),
          catalog,
          tables,
          files,
          keys,
          key_ids: Object.keys(installation.keys().keys),
          left_out: left
        }
        return made
      })
      for (const what of left) say(`not in it: ${what}`)
      return {
        bytes,
        tables: made?.tables.length ?? 0,
        files: made?.files.length ?? 0,
        hasKeys: made?.keys != null,
        leftOut: left
      }
    }
  )
}

async function addTable(
  table: Table,
  number: number,
  rows: (table: Table) => AsyncIterable<Buffer> | null,
  add: AddPart
): Promise<TablePart | null> {
  const bytes = rows(table)
  if (bytes === null) return null
  const facts = await add(`tables/${String(number + 1).padStart(6, '0')}`, bytes)
  return { ...facts, schema: table.schema, table: table.name }
}

/** Only where they are encrypted: who has the archive alone opens nothing that is sealed. */
async function addKeys(
  installation: Installation,
  recipients: readonly string[],
  add: AddPart
): Promise<PartFacts | null> {
  if (recipients.length === 0) return null
  const sealed = await encryptBytes(recipients, Buffer.from(JSON.stringify(installation.keys())))
  return await add('keys', once(sealed))
}

async function* once(bytes: Buffer): AsyncGenerator<Buffer> {
  yield bytes
}

const megabytes = (parts: readonly PartFacts[]): string =>
  (parts.reduce((sum, { bytes }) => sum + bytes, 0) / 1e6).toFixed(1)
