import { randomUUID } from 'node:crypto'
import type { RecoveryRecipients } from 'busbar/api/platform-backups'
import type { Clock, Database, Log, OptionalHandle, SecretPlace, Secrets, Tx } from 'busbar/sdk'

interface KeyRow {
  readonly id: string
  readonly recipient: string
  readonly identity: string
}

interface KeyRingParts {
  readonly db: Database
  readonly secrets: Secrets
  readonly clock: Clock
  readonly log: Log
  readonly recovery: OptionalHandle<RecoveryRecipients>
}

const place = (row: string): SecretPlace => ({ table: 'encryption_key', column: 'identity', row })

/**
 * What backups are encrypted to: a key of the installation, so that restores and drills need nobody, and the recovery key, so that
 * a backup is worth something when the installation is lost.
 */
export class KeyRing {
  constructor(private readonly parts: KeyRingParts) {}

  /**
   * The key of the installation, made on first use. One that does not open any more, as the keys of the installation were lost, is no
   * key: what is encrypted to it could be restored by nobody here.
   */
  async current(): Promise<{ readonly id: string; readonly recipient: string }> {
    return (await this.#newest()) ?? (await this.#make())
  }

  /** Those of the platform's own backups; none where there is no recovery key, or it cannot be read. */
  async recovery(): Promise<readonly string[]> {
    try {
      return (await this.parts.recovery.get()?.recipients()) ?? []
    } catch (error) {
      this.parts.log.warn(
        { err: error },
        'backups are not encrypted to the recovery key, which cannot be read'
      )
      return []
    }
  }

  /** What opens files that were encrypted to the key. */
  async identity(keyId: string): Promise<string> {
    const { db, secrets, log } = this.parts
    const [row] = await db.sql<KeyRow>(
      'select id, recipient, identity from $schema.encryption_key where id = :keyId',
      { keyId }
    )
    if (row === undefined) throw unreadable()
    try {
      return secrets.open(row.identity, place(row.id))
    } catch (error) {
      log.error({ err: error, keyId }, 'the key that backups are encrypted to cannot be decrypted')
      throw unreadable()
    }
  }

  /** Of those that open. */
  async #newest(tx?: Tx): Promise<KeyRow | undefined> {
    const rows = await this.parts.db.sql<KeyRow>(
      'select id, recipient, identity from $schema.encryption_key order by created_at desc, id desc',
      undefined,
      tx
    )
    return rows.find(row => this.#opens(row))
  }

  #opens({ id, identity }: KeyRow): boolean {
    const { secrets, log } = this.parts
    try {
      secrets.open(identity, place(id))
      return true
    } catch (error) {
      log.warn({ err: error, keyId: id }, 'a key that backups were encrypted to cannot be decrypted')
      return false
    }
  }

  async #make(): Promise<KeyRow> {
    const { db, secrets, clock } = this.parts
    const { makeKeyPair } = await import('busbar/sdk/age')
    const { identity, recipient } = await makeKeyPair()
    const id = randomUUID()
    const row = { id, recipient, identity: secrets.seal(identity, place(id)) }
    return await db.transaction(async tx => {
      await db.sql(
        "select pg_advisory_xact_lock(hashtextextended('backups.encryption-key', 0))",
        undefined,
        tx
      )
      // Somebody else may have been first.
      const known = await this.#newest(tx)
      if (known !== undefined) return known
      await db.sql(
        `insert into $schema.encryption_key (id, recipient, identity, created_at)
        values (:id, :recipient, :identity, :created_at)`,
        { ...row, created_at: clock.now() },
        tx
      )
      return row
    })
  }
}

const unreadable = (): Error =>
  new Error(
    'the key that the backup is encrypted to cannot be decrypted: restore the key of the installation that it was sealed with; by the recovery key the file can be read by hand'
  )
