import { applicationTable } from 'busbar/api/applications'
import type { Database, TableRow, Tx } from 'busbar/sdk'
import type { OpenSshKey } from './openssh-key.js'

interface DeployKeyRow {
  readonly public_key: string
  readonly fingerprint: string
  readonly created_at: Date | string
}
type SealedRow = DeployKeyRow & { readonly private_key: string }
type Named = Pick<TableRow<typeof applicationTable, 'slug'>, 'slug'>

/** The deploy keys of applications. */
export class DeployKeyStore {
  constructor(private readonly db: Database) {}

  /** The slug of an application, which stays until `tx` ends; undefined when it is being deleted. */
  async hold(projectId: string, applicationId: string, tx: Tx): Promise<string | undefined> {
    const [row] = await this.db.sql<Named>(
      `select a.slug from ${applicationTable.name} a
      where a.project_id = ? and a.id = ? and a.deleting_at is null for share`,
      [projectId, applicationId],
      tx
    )
    return row?.slug
  }

  /** Without the private part. */
  async find(projectId: string, applicationId: string): Promise<DeployKeyRow | undefined> {
    const [row] = await this.db.sql<DeployKeyRow>(
      `select k.public_key, k.fingerprint, k.created_at from $schema.deploy_key k
      join ${applicationTable.name} a on a.id = k.application_id
      where a.project_id = ? and a.id = ? and a.deleting_at is null`,
      [projectId, applicationId]
    )
    return row
  }

  async sealed(applicationId: string): Promise<SealedRow | undefined> {
    const [row] = await this.db.sql<SealedRow>(
      'select public_key, private_key, fingerprint, created_at from $schema.deploy_key where application_id = ?',
      [applicationId]
    )
    return row
  }

  /** Whether there was one before. */
  async put(
    applicationId: string,
    key: Pick<OpenSshKey, 'publicKey' | 'fingerprint'> & {
      readonly sealed: string
      readonly createdAt: Date
    },
    tx: Tx
  ): Promise<boolean> {
    const former = await this.remove(applicationId, tx)
    await this.db.sql(
      `insert into $schema.deploy_key (application_id, public_key, private_key, fingerprint, created_at)
      values (:applicationId, :publicKey, :sealed, :fingerprint, :createdAt)`,
      { applicationId, ...key },
      tx
    )
    return former
  }

  /** Whether there was one. */
  async remove(applicationId: string, tx?: Tx): Promise<boolean> {
    const rows = await this.db.sql(
      'delete from $schema.deploy_key where application_id = ? returning application_id',
      [applicationId],
      tx
    )
    return rows.length > 0
  }
}
