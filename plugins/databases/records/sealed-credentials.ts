import type { Log, Secrets } from 'busbar/sdk'
import type { EngineDatabase } from '../api.js'
import { problems } from '../problems.js'
import type { DatabaseRow } from './database-row.js'

/** Shown in answers in the place of what nobody reads there. */
export const sealedMark = 'sealed'

/** The credentials of a database, bound to its row. */
export class SealedCredentials {
  constructor(private readonly parts: { readonly secrets: Secrets; readonly log: Log }) {}

  seal(id: string, credentials: Readonly<Record<string, string>>): string {
    return this.parts.secrets.seal(JSON.stringify(credentials), place(id))
  }

  open({ id, credentials }: Pick<DatabaseRow, 'id' | 'credentials'>): Readonly<Record<string, string>> {
    const { secrets, log } = this.parts
    try {
      return JSON.parse(secrets.open(credentials, place(id))) as Record<string, string>
    } catch (error) {
      log.error({ err: error, databaseId: id }, 'the credentials of a database cannot be decrypted')
      throw problems.unreadable()
    }
  }

  /** The database as its engine needs to know it. */
  forEngine(row: DatabaseRow): EngineDatabase {
    return {
      version: row.version,
      credentials: this.open(row),
      port: row.container_port,
      dataDir: row.data_dir
    }
  }
}

const place = (row: string) => ({ table: 'database', column: 'credentials', row })
