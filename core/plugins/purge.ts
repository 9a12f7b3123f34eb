import { mkdir, readdir, rm, stat } from 'node:fs/promises'
import { join } from 'node:path'
import type { Clock, Log, Tx } from 'busbar/sdk'
import type { Postgres } from '../database/postgres.js'
import { dumpSchema, partialEnding } from '../database/schema-dump.js'
import {
  removeSchema,
  StillNeededError,
  schemaExists,
  type TableSize,
  tablesOf
} from '../database/schema-removal.js'
import { namesOfKernel, schemaOf } from './plugin-schema.js'
import { pluginProblems } from './problems.js'

/** What a plugin has left behind in the installation. */
interface Leftovers {
  readonly schema: string
  readonly tables: readonly TableSize[]
  /** Jobs that wait. */
  readonly jobs: number
  /** Whether the operator has given it settings or grants. */
  readonly settings: boolean
  /** Whether it keeps files in its folder under BUSBAR_DIR. */
  readonly files: boolean
}

/** `dump` is the file the rows were written to before they were removed; null in a preview, and where there were no tables. */
export interface PurgeReport extends Leftovers {
  readonly dump: string | null
}

interface PurgeParts {
  readonly postgres: Postgres
  readonly directory: string
  readonly clock: Clock
  readonly log: Log
}

const lockLimitMs = 10_000
/** "busb", and 2 for purges, of which several may run at a time. */
const purgeLock = [0x62757362, 2]

/** Removes what a plugin that is off has stored, whether its code is still there or not. */
export class Purge {
  constructor(private readonly parts: PurgeParts) {}

  /** What an earlier process was writing when it ended: those that purge now are not disturbed. */
  async removePartialDumps(): Promise<void> {
    const { postgres, directory } = this.parts
    const folder = join(directory, 'purged')
    const partial = (await readdir(folder).catch(() => [])).filter(name => name.endsWith(partialEnding))
    if (partial.length === 0) return
    await postgres.transaction(async tx => {
      const [lock] = await postgres.query<{ isFree: boolean }>(
        'select pg_try_advisory_xact_lock($1, $2) as "isFree"',
        purgeLock,
        tx
      )
      if (lock?.isFree === true) for (const name of partial) await rm(join(folder, name), { force: true })
    })
  }

  /** Whether anything of it is known to the database: it may have been installed once. */
  async isRemembered(id: string): Promise<boolean> {
    if (namesOfKernel.has(id)) return false
    const rows = await this.parts.postgres.query(
      'select from kernel.plugin where id = $1 union all select from kernel.migration where plugin = $1 limit 1',
      [id]
    )
    return rows.length > 0 || (await schemaExists(this.parts.postgres, schemaOf(id, false)))
  }

  async preview(id: string, builtIn: boolean): Promise<PurgeReport> {
    return { ...(await this.#leftovers(id, builtIn)), dump: null }
  }

  /** All or nothing in the database; rows are dumped to a file first. */
  async run(id: string, builtIn: boolean): Promise<PurgeReport> {
    const { postgres, directory, clock, log } = this.parts
    const folder = join(directory, 'purged')
    await mkdir(folder, { recursive: true, mode: 0o700 })
    const file = join(folder, `${id}-${clock.now().toISOString().replaceAll(':', '-')}.jsonl.gz`)
    try {
      const report = await postgres.transaction(async tx => {
        await postgres.query(`set local lock_timeout = ${lockLimitMs}`, undefined, tx)
        await postgres.query('select pg_advisory_xact_lock_shared($1, $2)', purgeLock, tx)
        const left = await this.#leftovers(id, builtIn, tx)
        const dump = left.tables.length > 0 ? file : null
        const about = {
          plugin: id,
          schema: left.schema,
          purged_at: clock.now(),
          migrations: await postgres.query(
            'select name, checksum, release from kernel.migration where plugin = $1 order by name',
            [id],
            tx
          )
        }
        if (dump !== null)
          await dumpSchema(postgres.onTablesOf(id, left.schema), {
            schema: left.schema,
            tables: left.tables,
            file,
            about,
            tx
          })
        if (await schemaExists(postgres, left.schema, tx)) await removeSchema(postgres, left.schema, tx)
        await this.#forget(id, builtIn, tx)
        return { ...left, dump }
      })
      for (const part of ['data', 'bundles'])
        await rm(join(directory, part, id), { recursive: true, force: true })
      log.warn({ plugin: id, ...report }, 'what a plugin had stored was removed')
      return report
    } catch (error) {
      for (const written of [file, `${file}${partialEnding}`]) await rm(written, { force: true })
      if (error instanceof StillNeededError) throw pluginProblems.purgeBlocked({ id, detail: error.detail })
      throw error
    }
  }

  async #leftovers(id: string, builtIn: boolean, tx?: Tx): Promise<Leftovers> {
    const { postgres, directory } = this.parts
    const schema = schemaOf(id, builtIn)
    const [row] = await postgres.query<{ settings: boolean }>(
      "select exists (select from kernel.plugin where id = $1 and (config <> '{}' or grants <> '[]')) as settings",
      [id],
      tx
    )
    return {
      schema,
      // Code of the plugin may run where its tables are read.
      tables: await tablesOf(postgres.onTablesOf(id, schema), schema, tx),
      jobs: (await this.#jobs(id, tx)).length,
      settings: row?.settings ?? false,
      files: await stat(join(directory, 'data', id)).then(
        () => true,
        () => false
      )
    }
  }

  async #jobs(id: string, tx?: Tx): Promise<string[]> {
    const { postgres } = this.parts
    const [queue] = await postgres.query<{ isThere: boolean }>(
      'select to_regclass(\'graphile_worker.jobs\') is not null as "isThere"',
      undefined,
      tx
    )
    if (queue?.isThere !== true) return []
    const rows = await postgres.query<{ id: string }>(
      "select id::text as id from graphile_worker.jobs where starts_with(task_identifier, $1 || ':') and locked_at is null",
      [id],
      tx
    )
    return rows.map(row => row.id)
  }

  async #forget(id: string, builtIn: boolean, tx: Tx): Promise<void> {
    const { postgres } = this.parts
    const jobs = await this.#jobs(id, tx)
    if (jobs.length > 0)
      await postgres.query('select from graphile_worker.complete_jobs($1::bigint[])', [jobs], tx)
    await postgres.query('delete from kernel.schedule where plugin = $1', [id], tx)
    await postgres.query('delete from kernel.migration where plugin = $1', [id], tx)
    // A built-in plugin without a stored choice is on.
    if (builtIn)
      await postgres.query(
        "update kernel.plugin set config = '{}', grants = '[]', quarantined = null where id = $1",
        [id],
        tx
      )
    else await postgres.query('delete from kernel.plugin where id = $1', [id], tx)
  }
}
