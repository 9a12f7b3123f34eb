import { Readable } from 'node:stream'
import {
  type Clock,
  countedRows,
  isUuid,
  LargeTotals,
  type Page,
  type Resources,
  type Rows
} from 'busbar/sdk'
import type { AuditFilter } from './audit-filter.js'
import type { AuditRow, AuditStore, Cursor } from './audit-store.js'
import { csvLine } from './csv.js'
import type { AuditRecord } from './schemas.js'

/** The most that one export holds. */
const exportLimit = 10_000
/** Records read at a time: an export keeps no more than that in memory. */
const exportPage = 500

interface AuditExport {
  readonly source: Readable
  readonly filename: string
  readonly isTruncated: boolean
}

export class AuditService {
  readonly #totals: LargeTotals

  constructor(
    private readonly store: AuditStore,
    private readonly resources: Pick<Resources, 'namesOf'>,
    private readonly clock: Clock
  ) {
    this.#totals = new LargeTotals(clock)
  }

  async list(filter: AuditFilter, page: Page): Promise<Rows<AuditRecord>> {
    const rows = await this.store.page(filter, page)
    return await countedRows(page, await this.#named(rows), () =>
      this.#totals.of(JSON.stringify(filter), () => this.store.count(filter))
    )
  }

  async actions(): Promise<string[]> {
    return await this.store.actions()
  }

  async export(filter: AuditFilter): Promise<AuditExport> {
    return {
      source: Readable.from(this.#lines(filter)),
      filename: `audit-log-${this.clock.now().toISOString().slice(0, 10)}.csv`,
      isTruncated: await this.store.isMoreThan(filter, exportLimit)
    }
  }

  async *#lines(filter: AuditFilter): AsyncGenerator<string> {
    yield csvLine(['time', 'action', 'actor', 'resource_type', 'resource', 'ip'])
    let last: Cursor | undefined
    for (let read = 0; read < exportLimit; read += exportPage) {
      const rows = await this.store.after(filter, last, exportPage)
      yield (await this.#named(rows)).map(lineOf).join('')
      last = rows.at(-1)
      if (rows.length < exportPage) return
    }
  }

  /** One question per kind of resource on the page. */
  async #named(rows: readonly AuditRow[]): Promise<AuditRecord[]> {
    const known = new Map<string, string>()
    const kinds = [...new Set(rows.map(row => row.resource_type))]
    await Promise.all(
      kinds.map(async kind => {
        const ids = new Set(
          rows.flatMap(row =>
            row.resource_type === kind && row.resource_id !== null && isUuid(row.resource_id)
              ? row.resource_id
              : []
          )
        )
        for (const { id, name } of await this.resources.namesOf(kind, [...ids]))
          known.set(`${kind} ${id}`, name)
      })
    )
    return rows.map(row => ({
      ...row,
      resource_name: known.get(`${row.resource_type} ${row.resource_id ?? ''}`) ?? ''
    }))
  }
}

function lineOf(record: AuditRecord): string {
  const actor = record.user_email ?? record.user_id ?? ''
  return csvLine([
    new Date(record.created_at).toISOString(),
    record.action,
    record.token_name === '' ? actor : `${actor} (token ${record.token_name})`,
    record.resource_type,
    record.resource_name === '' ? (record.resource_id ?? '') : record.resource_name,
    record.ip_address ?? ''
  ])
}
