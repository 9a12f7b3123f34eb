import type { Database, Page } from 'busbar/sdk'
import type { AuditFilter } from './audit-filter.js'
import type { AuditRecord } from './schemas.js'

/** A record without what its resource is called now. */
export type AuditRow = Omit<AuditRecord, 'resource_name' | 'created_at'> & { readonly created_at: Date }

/** Where reading goes on: after this record, newest first. */
export type Cursor = Pick<AuditRow, 'id' | 'created_at'>

const columns = `id, user_id, user_email, user_username, token_id, token_name, action, resource_type, resource_id,
  details, ip_address, created_at`

/** Reads the kernel's records, newest first. */
export class AuditStore {
  constructor(
    private readonly db: Database,
    private readonly table: string
  ) {}

  async page(filter: AuditFilter, page: Page): Promise<AuditRow[]> {
    const { where, values } = conditions(filter)
    return await this.db.sql<AuditRow>(
      `
      select ${columns} from ${this.table} ${where}
      order by created_at desc, id desc limit :limit offset :offset`,
      { ...values, ...page }
    )
  }

  /** The next `limit` records after the cursor: each page costs the same, however far down it is. */
  async after(filter: AuditFilter, cursor: Cursor | undefined, limit: number): Promise<AuditRow[]> {
    const { where, values } = conditions(filter, cursor)
    return await this.db.sql<AuditRow>(
      `
      select ${columns} from ${this.table} ${where}
      order by created_at desc, id desc limit :limit`,
      { ...values, limit }
    )
  }

  async count(filter: AuditFilter): Promise<Array<{ total: number }>> {
    const { where, values } = conditions(filter)
    return await this.db.sql(`select count(*) as total from ${this.table} ${where}`, values)
  }

  async isMoreThan(filter: AuditFilter, rows: number): Promise<boolean> {
    const { where, values } = conditions(filter)
    return (
      (
        await this.db.sql(
          `select 1 from ${this.table} ${where} order by created_at desc, id desc offset :rows limit 1`,
          { ...values, rows }
        )
      ).length > 0
    )
  }

  /** Sorted and distinct. Hops from one to the next in the index instead of reading every record. */
  async actions(): Promise<string[]> {
    const rows = await this.db.sql<{ action: string }>(`
      with recursive found (action) as (
        (select action from ${this.table} order by action limit 1)
        union all
        select (select next.action from ${this.table} as next where next.action > found.action order by next.action limit 1)
        from found where found.action is not null
      )
      select action from found where action is not null order by action collate "C"`)
    return rows.map(({ action }) => action)
  }
}

const tests: ReadonlyArray<readonly [keyof AuditFilter, sql: string]> = [
  ['action', 'action = :action'],
  ['resourceType', 'resource_type = :resourceType'],
  ['resourceId', 'resource_id = :resourceId'],
  ['userId', 'user_id = :userId'],
  ['from', 'created_at >= :from'],
  ['to', 'created_at < :to']
]

/** Only what is asked for stands in the statement, so that the planner sees which index serves it. */
function conditions(
  filter: AuditFilter,
  cursor?: Cursor
): { where: string; values: Record<string, unknown> } {
  const asked = tests.filter(([name]) => filter[name] !== undefined)
  const all = [
    ...asked.map(([, sql]) => sql),
    ...(cursor === undefined ? [] : ['(created_at, id) < (:cursorTime, :cursorId)'])
  ]
  return {
    where: all.length === 0 ? '' : `where ${all.join(' and ')}`,
    values: {
      ...Object.fromEntries(asked.map(([name]) => [name, filter[name]])),
      ...(cursor === undefined ? {} : { cursorTime: cursor.created_at, cursorId: cursor.id })
    }
  }
}
