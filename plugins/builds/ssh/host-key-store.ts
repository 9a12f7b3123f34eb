import { applicationTable } from 'busbar/api/applications'
import type { Database } from 'busbar/sdk'
import type { HostKey } from './host-key.js'

interface HostKeyRow {
  readonly host: string
  readonly key: string
  readonly fingerprint: string
  readonly recorded_at: Date | string
}

/** The keys by which applications know the hosts of their repositories. */
export class HostKeyStore {
  constructor(private readonly db: Database) {}

  async list(applicationId: string): Promise<HostKeyRow[]> {
    return await this.db.sql<HostKeyRow>(
      'select host, key, fingerprint, recorded_at from $schema.host_key where application_id = ? order by host',
      [applicationId]
    )
  }

  async find(applicationId: string, host: string): Promise<HostKeyRow | undefined> {
    const [row] = await this.db.sql<HostKeyRow>(
      'select host, key, fingerprint, recorded_at from $schema.host_key where application_id = ? and host = ?',
      [applicationId, host]
    )
    return row
  }

  /** The first one stays, whatever came meanwhile. Not for an application that is being deleted: it would outlive that. */
  async add(applicationId: string, { host, key, fingerprint }: HostKey, recordedAt: Date): Promise<void> {
    await this.db.sql(
      `insert into $schema.host_key (application_id, host, key, fingerprint, recorded_at)
      select a.id, :host, :key, :fingerprint, :recordedAt from ${applicationTable.name} a
      where a.id = :applicationId and a.deleting_at is null for share
      on conflict do nothing`,
      { applicationId, host, key, fingerprint, recordedAt }
    )
  }

  /** All of an application. */
  async remove(applicationId: string): Promise<void> {
    await this.db.sql('delete from $schema.host_key where application_id = ?', [applicationId])
  }
}
