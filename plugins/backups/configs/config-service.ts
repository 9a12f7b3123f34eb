import { randomUUID } from 'node:crypto'
import {
  type Clock,
  type Database,
  isUuid,
  type Page,
  type ProjectId,
  type Rows,
  type Schedules,
  type Tx
} from 'busbar/sdk'
import type { BackupResource, SourceKind } from '../api.js'
import type { DestinationStore } from '../destinations/destination-store.js'
import { problems } from '../problems.js'
import type { BackupService } from '../runs/backup-service.js'
import { isKeyPart, trimSlashes } from '../runs/file-name.js'
import type { Settings } from '../settings.js'
import type { SourceStore } from '../sources/source-store.js'
import type { Sources } from '../sources/sources.js'
import { planOf, runKey } from './config-plan.js'
import type { ConfigOfSource, ConfigRow, ConfigStore } from './config-store.js'

interface ConfigParts {
  readonly db: Database
  readonly clock: Clock
  readonly schedules: Schedules
  readonly store: ConfigStore
  readonly destinations: DestinationStore
  readonly sourceStore: SourceStore
  readonly sources: Sources
  readonly backups: BackupService
  readonly settings: Pick<Settings, 'drill_schedule' | 'time_zone'>
}

/** What comes in; what is left out stays, or is the default. */
interface ConfigInput {
  readonly destination_id?: string
  readonly schedule?: string
  readonly time_zone?: string
  readonly drill_schedule?: string
  readonly prefix?: string
  readonly keep_latest?: number | null
  readonly enabled?: boolean | null
  readonly quiesce?: boolean
  readonly databases?: readonly string[]
}

/** As it is told. */
export type ConfigView = ConfigOfSource & { readonly next_run_at: Date | null }

const mostConfigs = 20
const drillKey = (id: string): string => `drill/${id}`

/** When backups are made by themselves. */
export class ConfigService {
  constructor(private readonly parts: ConfigParts) {}

  async ofResource(kind: SourceKind, resourceId: string, page: Page): Promise<Rows<ConfigView>> {
    return await this.#viewed(await this.parts.store.ofResource(kind, resourceId, page))
  }

  async ofApplication(applicationId: string, page: Page): Promise<Rows<ConfigView>> {
    return await this.#viewed(await this.parts.store.ofApplication(applicationId, page))
  }

  async create(
    project: ProjectId,
    kind: SourceKind,
    resourceId: string,
    input: ConfigInput
  ): Promise<ConfigView> {
    const { db, clock, store, sourceStore, sources, settings } = this.parts
    const resource = await sources.resource(kind, resourceId, project)
    await this.#assertChoice(kind, resourceId, input)
    const now = clock.now()
    const id = randomUUID()
    await db.transaction(async tx => {
      const source = await sourceStore.hold(kind, resource, tx)
      if (source.deleted_at !== null) throw problems.resourceGone({ kind, id: resourceId })
      if ((await store.count(source.id, tx)) >= mostConfigs)
        throw problems.tooManyConfigs({ limit: mostConfigs })
      const blank: ConfigRow = {
        id,
        source_id: source.id,
        destination_id: '',
        schedule: '',
        time_zone: settings.time_zone,
        drill_schedule: settings.drill_schedule,
        prefix: '',
        keep_latest: null,
        enabled: true,
        quiesce: false,
        databases: [],
        last_run_at: null,
        created_at: now,
        updated_at: now
      }
      const row = await this.#changed(blank, input, { project, resource, tx })
      await store.insert(row, tx)
      await this.#schedule(row, tx)
    })
    return await this.#view(id)
  }

  async update(
    project: ProjectId,
    kind: SourceKind,
    resourceId: string,
    id: string,
    input: ConfigInput
  ): Promise<ConfigView> {
    const { db, clock, store, sources } = this.parts
    const resource = await sources.resource(kind, resourceId, project)
    await this.#assertChoice(kind, resourceId, input)
    await db.transaction(async tx => {
      const before = await this.#find(kind, resourceId, id, tx)
      const row = await this.#changed(before, input, { project, resource, tx })
      await store.update({ ...row, updated_at: clock.now() }, tx)
      await this.#schedule(row, tx)
    })
    return await this.#view(id)
  }

  /** The backups that it has made stay. */
  async remove(kind: SourceKind, resourceId: string, id: string): Promise<{ status: string }> {
    const { db } = this.parts
    await db.transaction(async tx => {
      await this.#find(kind, resourceId, id, tx)
      await this.#remove(id, tx)
    })
    return { status: 'deleted' }
  }

  /** All of a source that is being removed. */
  async removeAll(sourceId: string, tx: Tx): Promise<void> {
    for (const id of await this.parts.store.ofSource(sourceId, tx)) await this.#remove(id, tx)
  }

  async unscheduleProject(projectId: string): Promise<void> {
    const { store, schedules } = this.parts
    for (const id of await store.ofProject(projectId)) {
      await schedules.remove(runKey(id))
      await schedules.remove(drillKey(id))
    }
  }

  /** Makes a backup as the schedule would, now. */
  async run(project: ProjectId, kind: SourceKind, resourceId: string, id: string): Promise<void> {
    const config = await this.#find(kind, resourceId, id)
    await this.parts.backups.begin(kind, resourceId, project, planOf(config))
  }

  async #find(kind: SourceKind, resourceId: string, id: string, tx?: Tx): Promise<ConfigOfSource> {
    const found = await this.parts.store.find(id, tx)
    if (found === undefined || found.kind !== kind || found.resource_id !== resourceId)
      throw problems.configNotFound({ configId: id })
    return found
  }

  /** Before a transaction is begun, as another plugin answers. */
  async #assertChoice(kind: SourceKind, resourceId: string, { databases = [] }: ConfigInput): Promise<void> {
    if (databases.length === 0) return
    const { sources } = this.parts
    const source = sources.get(kind)
    const reason = await sources.ask(kind, async () => (await source.choiceRefusal?.(resourceId)) ?? null)
    if (reason !== null) throw problems.databasesChoice({ reason })
  }

  async #changed(
    before: ConfigRow,
    input: ConfigInput,
    {
      project,
      resource,
      tx
    }: { readonly project: ProjectId; readonly resource: BackupResource; readonly tx: Tx }
  ): Promise<ConfigRow> {
    const destination = input.destination_id ?? before.destination_id
    // Held, so that it is not deleted meanwhile.
    if (!isUuid(destination) || (await this.parts.destinations.hold(project, destination, tx)) === undefined)
      throw problems.destinationUnknown({ destinationId: destination.slice(0, 40) || '""' })
    const prefix = trimSlashes(input.prefix?.trim() ?? before.prefix)
    if (!isKeyPart(prefix)) throw problems.prefixInvalid()
    const databases = [...new Set(input.databases ?? before.databases)]
    const known = resource.databases
    const unknown = known.length === 0 ? undefined : databases.find(name => !known.includes(name))
    if (unknown !== undefined && input.databases !== undefined)
      throw problems.databasesUnknown({ database: unknown.slice(0, 100) })
    return {
      ...before,
      destination_id: destination,
      schedule: fiveFields('schedule', input.schedule?.trim() ?? before.schedule),
      time_zone: input.time_zone?.trim() || before.time_zone,
      drill_schedule: drillOf(input.drill_schedule?.trim() ?? before.drill_schedule),
      prefix,
      keep_latest: input.keep_latest === undefined ? before.keep_latest : input.keep_latest,
      enabled: input.enabled ?? before.enabled,
      quiesce: input.quiesce ?? before.quiesce,
      databases
    }
  }

  /** Throws what is wrong with the expressions, for who typed them. */
  async #schedule(row: ConfigRow, tx: Tx): Promise<void> {
    const { schedules } = this.parts
    const { id, time_zone: timeZone } = row
    const [run, drill] = [row.schedule, row.drill_schedule]
    for (const [field, cron] of [
      ['schedule', run],
      ['drill_schedule', drill]
    ] as const)
      if (cron !== '' && schedules.preview({ cron, timeZone }, 1).length === 0)
        throw problems.scheduleNever({ field })
    const payload = { configId: id }
    if (row.enabled)
      await schedules.set(runKey(id), { cron: run, timeZone, job: 'due', payload, missed: 'run-once' }, tx)
    else await schedules.remove(runKey(id), tx)
    if (drill !== '')
      await schedules.set(
        drillKey(id),
        { cron: drill, timeZone, job: 'drill-due', payload, missed: 'run-once' },
        tx
      )
    else await schedules.remove(drillKey(id), tx)
  }

  async #remove(id: string, tx: Tx): Promise<void> {
    const { store, schedules } = this.parts
    await schedules.remove(runKey(id), tx)
    await schedules.remove(drillKey(id), tx)
    await store.remove(id, tx)
  }

  async #view(id: string): Promise<ConfigView> {
    const row = await this.parts.store.find(id)
    if (row === undefined) throw problems.configNotFound({ configId: id })
    const { rows } = await this.#viewed({ rows: [row], total: 1 })
    return rows[0] ?? { ...row, next_run_at: null }
  }

  async #viewed({ rows, total }: Rows<ConfigOfSource>): Promise<Rows<ConfigView>> {
    const times = await this.parts.schedules.times(rows.map(({ id }) => runKey(id)))
    return {
      rows: rows.map(row => ({ ...row, next_run_at: times.get(runKey(row.id))?.nextAt ?? null })),
      total
    }
  }
}

const drillOf = (written: string): string => (written === '' ? '' : fiveFields('drill_schedule', written))

/** The platform takes seconds too; backups each second are a mistake. */
function fiveFields(field: string, written: string): string {
  const fields = written.split(/\s+/).filter(one => one !== '')
  if (fields.length !== 5) throw problems.scheduleFields({ field })
  return fields.join(' ')
}
