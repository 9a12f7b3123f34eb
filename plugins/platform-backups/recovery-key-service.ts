import { randomUUID } from 'node:crypto'
import { readFile } from 'node:fs/promises'
import type { Clock, Database } from 'busbar/sdk'
import { isRecipient, makeKeyPair } from 'busbar/sdk/age'
import { problems } from './problems.js'

interface RecoveryKeyRow {
  readonly recipient: string
  readonly created_at: Date
}

interface RecoveryKeyParts {
  readonly db: Database
  readonly clock: Clock
  /** BACKUP_ENCRYPTION_KEY: a recipient, or a file with one. */
  readonly given: string | undefined
}

/** What archives are encrypted to. The keys that open them are nowhere in the installation. */
export class RecoveryKeyService {
  constructor(private readonly parts: RecoveryKeyParts) {}

  async current(): Promise<{ readonly recipient: string | null; readonly created_at: Date | null }> {
    const row = await this.#row()
    return { recipient: row?.recipient ?? null, created_at: row?.created_at ?? null }
  }

  async create({ replace = false }: { readonly replace?: boolean }): Promise<{
    readonly recovery_key: string
    readonly recipient: string
    readonly created_at: Date
  }> {
    const { db, clock } = this.parts
    const { identity, recipient } = await makeKeyPair()
    const created_at = clock.now()
    await db.transaction(async tx => {
      // Of two at once, one would show a key that nothing is encrypted to.
      await db.sql(
        "select pg_advisory_xact_lock(hashtextextended('platform-backups.recovery-key', 0))",
        undefined,
        tx
      )
      const [known] = await db.sql<RecoveryKeyRow>(
        'select recipient, created_at from $schema.recovery_key order by created_at desc, id desc limit 1',
        undefined,
        tx
      )
      if (known !== undefined && !replace)
        throw problems.recoveryKeyExists({ createdAt: known.created_at.toISOString() })
      await db.sql(
        'insert into $schema.recovery_key (id, recipient, created_at) values (:id, :recipient, :created_at)',
        { id: randomUUID(), recipient, created_at },
        tx
      )
    })
    return { recovery_key: identity, recipient, created_at }
  }

  /** What an archive is encrypted to now: any of these opens it. Rejects where BACKUP_ENCRYPTION_KEY cannot be used. */
  async recipients(): Promise<readonly string[]> {
    const stored = await this.#row()
    const given = await this.#given()
    return [...new Set([stored?.recipient, given].filter(one => one !== undefined))]
  }

  async #row(): Promise<RecoveryKeyRow | undefined> {
    const [row] = await this.parts.db.sql<RecoveryKeyRow>(
      'select recipient, created_at from $schema.recovery_key order by created_at desc, id desc limit 1'
    )
    return row
  }

  async #given(): Promise<string | undefined> {
    return await readRecipient(this.parts.given)
  }
}

/** The recipient that BACKUP_ENCRYPTION_KEY is, or that the file has which it names. Lines with `#` are comments. */
export async function readRecipient(given: string | undefined): Promise<string | undefined> {
  if (given === undefined) return undefined
  if (await isRecipient(given)) return given
  const text = await readFile(given, 'utf8').catch((error: unknown) => {
    throw new Error(
      'BACKUP_ENCRYPTION_KEY is neither an age recipient (age1…) nor a file that can be read: nothing is backed up before it is corrected',
      { cause: error }
    )
  })
  const found = text
    .split('\n')
    .map(line => line.trim())
    .find(line => line !== '' && !line.startsWith('#'))
  if (found === undefined || !(await isRecipient(found)))
    throw new Error('the file that BACKUP_ENCRYPTION_KEY names holds no age recipient (age1…)')
  return found
}
