import type { DatabaseAnswer } from '../schemas.js'
import type { DatabaseRow } from './database-row.js'
import { sealedMark } from './sealed-credentials.js'

interface AnswerContext {
  readonly isMissing: boolean
  readonly sshHost: string
  readonly sshUser: string
}

/** What users see of a row. */
export function databaseAnswer(
  row: DatabaseRow,
  { isMissing, sshHost, sshUser }: AnswerContext
): DatabaseAnswer {
  const isOther = row.type === 'other'
  return {
    id: row.id,
    project_id: row.project_id,
    name: row.name,
    slug: row.slug,
    type: row.type,
    version: row.version,
    status: row.status,
    status_detail: row.status_detail,
    image: row.image,
    image_digest: digestOf(row.image_reference),
    source_kind: row.source_kind,
    source_ref: row.source_ref,
    backup_mode: row.backup_mode,
    backup_command: row.backup_command,
    restore_command: row.restore_command,
    data_dir: row.data_dir,
    internal_host: row.slug,
    internal_port: row.container_port,
    container_port: isOther ? row.container_port : null,
    host_port: row.is_external ? row.external_port : null,
    credentials_encrypted: sealedMark,
    cpu_limit: row.cpu_limit,
    memory_limit: row.memory_limit,
    container_missing: isMissing,
    external_access:
      row.is_external && row.external_port !== null
        ? { enabled: true, host_port: row.external_port, ssh_host: sshHost, ssh_user: sshUser }
        : null,
    volume: row.volume_bytes === null ? null : { name: row.volume, size_bytes: row.volume_bytes },
    created_at: row.created_at
  }
}

/** Of an image that came from no registry, its id. */
const digestOf = (reference: string | null): string | null =>
  reference === null ? null : (/sha256:[0-9a-f]{64}$/.exec(reference)?.[0] ?? null)

/** Only of those that should not run is it worth a word. */
export const mayMiss = ({ status }: Pick<DatabaseRow, 'status'>): boolean =>
  status === 'stopped' || status === 'failed'
