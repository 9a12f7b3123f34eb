import { randomUUID } from 'node:crypto'
import type { ProjectDirectory } from 'busbar/api/projects'
import {
  type Clock,
  type Contributions,
  type Database,
  isUuid,
  type Page,
  type ProjectId,
  type Rows,
  type SecretPlace,
  type Secrets,
  withTimeLimit
} from 'busbar/sdk'
import { s3Endpoint } from 'busbar/sdk/s3'
import { type BackupStorage, type DestinationKind, type DestinationSettings, StorageError } from '../api.js'
import { problems } from '../problems.js'
import { isKeyPart, trimSlashes } from '../runs/file-name.js'
import type { DestinationRow, DestinationStore } from './destination-store.js'
import { endpointOf } from './providers.js'
import type { DestinationAnswer, DestinationBody, TrialAnswer, TrialBody } from './schemas.js'

interface DestinationParts {
  readonly db: Database
  readonly store: DestinationStore
  readonly secrets: Secrets
  readonly clock: Clock
  readonly projects: ProjectDirectory
  readonly kinds: Contributions<DestinationKind>
}

/** What a destination is, but for its keys. */
type Place = Omit<DestinationRow, 'access_key' | 'secret_key' | 'created_at' | 'updated_at'>

const mostDestinations = 50
const trialMs = 15_000
const defaults = { provider: 's3', region: 'us-east-1' }

const placeOf = (row: string, column: 'access_key' | 'secret_key'): SecretPlace => ({
  table: 'destination',
  column,
  row
})

/** Where backups of a project are kept. */
export class DestinationService {
  constructor(private readonly parts: DestinationParts) {}

  async list(project: ProjectId, page: Page): Promise<Rows<DestinationAnswer>> {
    const { rows, total } = await this.parts.store.list(project, page)
    return { rows: rows.map(answer), total }
  }

  async create(project: ProjectId, body: DestinationBody): Promise<DestinationAnswer> {
    const { db, store, clock, projects, secrets } = this.parts
    const id = randomUUID()
    const place = this.#placed(
      { id, project_id: project, name: '', endpoint: '', bucket: '', prefix: '', use_ssl: true, ...defaults },
      body
    )
    const keys = givenKeys(body)
    if (keys === null && this.#kind(place.provider).needs.includes('keys')) throw problems.destinationKeys()
    const now = clock.now()
    const row: DestinationRow = {
      ...place,
      access_key: keys === null ? null : secrets.seal(keys.accessKey, placeOf(id, 'access_key')),
      secret_key: keys === null ? null : secrets.seal(keys.secretKey, placeOf(id, 'secret_key')),
      created_at: now,
      updated_at: now
    }
    await db.transaction(async tx => {
      if ((await projects.find(project, tx)) === undefined) throw problems.projectGone({ projectId: project })
      if ((await store.count(project, tx)) >= mostDestinations)
        throw problems.tooManyDestinations({ limit: mostDestinations })
      if (!(await store.insert(row, tx))) throw problems.destinationNameTaken({ name: row.name })
    })
    return answer(row)
  }

  async update(project: ProjectId, id: string, body: DestinationBody): Promise<DestinationAnswer> {
    const { db, store, clock, secrets } = this.parts
    return await db.transaction(async tx => {
      const before = await store.hold(project, id, tx)
      if (before === undefined) throw problems.destinationNotFound({ destinationId: id })
      const place = this.#placed(before, body)
      const { backups } = await store.use(id, tx)
      const locked = backups > 0 ? lockedField(before, place) : undefined
      if (locked !== undefined) throw problems.destinationLocked({ field: locked, count: backups })
      const keys = givenKeys(body)
      if (keys === null && before.secret_key !== null && isElsewhere(before, place))
        throw problems.destinationKeysAgain({ host: hostName(place) })
      if (keys === null && before.secret_key === null && this.#kind(place.provider).needs.includes('keys'))
        throw problems.destinationKeys()
      if (await store.isNameTaken(project, place.name, id, tx))
        throw problems.destinationNameTaken({ name: place.name })
      const row: DestinationRow = {
        ...before,
        ...place,
        ...(keys !== null && {
          access_key: secrets.seal(keys.accessKey, placeOf(id, 'access_key')),
          secret_key: secrets.seal(keys.secretKey, placeOf(id, 'secret_key'))
        }),
        updated_at: clock.now()
      }
      await store.update(row, tx)
      return answer(row)
    })
  }

  async remove(project: ProjectId, id: string): Promise<{ status: string }> {
    const { db, store } = this.parts
    await db.transaction(async tx => {
      if ((await store.hold(project, id, tx)) === undefined)
        throw problems.destinationNotFound({ destinationId: id })
      const { schedules, backups } = await store.use(id, tx)
      if (schedules + backups > 0) throw problems.destinationInUse({ schedules, count: backups })
      await store.remove(id, tx)
    })
    return { status: 'deleted' }
  }

  /** Whether it works now. */
  async test(project: ProjectId, id: string, signal: AbortSignal): Promise<TrialAnswer> {
    const row = await this.parts.store.find(project, id)
    if (row === undefined) throw problems.destinationNotFound({ destinationId: id })
    return await this.#try(this.#settings(row), signal)
  }

  /** The same of one that is not saved. */
  async try(project: ProjectId, body: TrialBody, signal: AbortSignal): Promise<TrialAnswer> {
    const { id = '' } = body
    const stored = isUuid(id) ? await this.parts.store.find(project, id) : undefined
    if (id !== '' && stored === undefined) throw problems.destinationNotFound({ destinationId: id })
    const before = stored ?? {
      id: '',
      project_id: project,
      name: 'trial',
      endpoint: '',
      bucket: '',
      prefix: '',
      use_ssl: true,
      ...defaults
    }
    const place = this.#placed(before, { ...body, name: body.name || before.name })
    const keys = givenKeys(body)
    if (keys !== null) return await this.#try({ ...settingsOf(place), ...keys }, signal)
    if (!this.#kind(place.provider).needs.includes('keys'))
      return await this.#try({ ...settingsOf(place), accessKey: '', secretKey: '' }, signal)
    if (stored === undefined) throw problems.destinationKeys()
    if (isElsewhere(stored, place)) throw problems.destinationKeysAgain({ host: hostName(place) })
    const { accessKey, secretKey } = this.#settings(stored)
    return await this.#try({ ...settingsOf(place), accessKey, secretKey }, signal)
  }

  /** For a run: the place, and what keys there begin with. Undefined where it is gone. */
  async open(
    project: string,
    id: string
  ): Promise<
    { readonly storage: BackupStorage; readonly name: string; readonly prefix: string } | undefined
  > {
    const row = await this.parts.store.find(project, id)
    if (row === undefined) return undefined
    const storage = await this.#kind(row.provider).open(this.#settings(row))
    return { storage, name: row.name, prefix: row.prefix }
  }

  async #try(settings: DestinationSettings, signal: AbortSignal): Promise<TrialAnswer> {
    try {
      const storage = await this.#kind(settings.provider).open(settings)
      await withTimeLimit(
        {
          ms: trialMs,
          signal,
          reason: () => new StorageError(`it did not answer within ${trialMs / 1000} s`)
        },
        async limited => await storage.test({ signal: limited })
      )
      return { ok: true }
    } catch (error) {
      if (error instanceof StorageError) return { ok: false, error: error.message }
      throw error
    }
  }

  #kind(provider: string): DestinationKind {
    const kind = this.parts.kinds.get(provider)
    if (kind === undefined)
      throw problems.providerUnknown({
        provider: provider.slice(0, 40),
        known: this.parts.kinds.keys().join(', ')
      })
    return kind
  }

  #placed(before: Place, body: DestinationBody): Place {
    const given = (name: 'name' | 'region' | 'bucket' | 'provider'): string =>
      body[name]?.trim() || before[name]
    const endpoint = body.endpoint === undefined ? before.endpoint : s3Endpoint(body.endpoint)
    if (endpoint === undefined)
      throw problems.endpointInvalid({ endpoint: (body.endpoint ?? '').slice(0, 100) })
    const prefix = trimSlashes(body.prefix?.trim() ?? before.prefix)
    if (!isKeyPart(prefix)) throw problems.prefixInvalid()
    const place: Place = {
      id: before.id,
      project_id: before.project_id,
      name: given('name'),
      provider: given('provider'),
      endpoint,
      region: given('region'),
      bucket: given('bucket'),
      prefix,
      use_ssl: body.use_ssl ?? before.use_ssl
    }
    const { needs } = this.#kind(place.provider)
    if (place.name === '') throw problems.destinationField({ field: 'name' })
    if (needs.includes('bucket') && place.bucket === '') throw problems.destinationField({ field: 'bucket' })
    if (place.provider === 'r2' && endpoint === '') throw problems.destinationField({ field: 'endpoint' })
    if (place.provider === 'minio' && endpoint === '') throw problems.destinationField({ field: 'endpoint' })
    return place
  }

  #settings(row: DestinationRow): DestinationSettings {
    const { secrets } = this.parts
    const opened = (column: 'access_key' | 'secret_key'): string => {
      const sealed = row[column]
      if (sealed === null) return ''
      try {
        return secrets.open(sealed, placeOf(row.id, column))
      } catch {
        throw problems.keysUnreadable({ name: row.name })
      }
    }
    return { ...settingsOf(row), accessKey: opened('access_key'), secretKey: opened('secret_key') }
  }
}

function givenKeys({ access_key: accessKey = '', secret_key: secretKey = '' }: DestinationBody) {
  if (accessKey === '' && secretKey === '') return null
  // An empty field is what a form sends that shows no key: half of a pair is a mistake.
  if (accessKey === '' || secretKey === '') throw problems.destinationKeys()
  return { accessKey, secretKey }
}

const hostName = (place: Place): string => endpointOf(place) || `s3.${place.region}.amazonaws.com`

/** Whether keys would go somewhere else, or in clear. */
const isElsewhere = (before: Place, place: Place): boolean =>
  hostName(before) !== hostName(place) || (before.use_ssl && !place.use_ssl)

/** What cannot change while files are there: they would not be found any more. */
function lockedField(before: Place, place: Place): string | undefined {
  const fields = ['provider', 'endpoint', 'bucket'] as const
  const locked = fields.find(field => before[field] !== place[field])
  return locked ?? (hostName(before) === hostName(place) ? undefined : 'region')
}

const settingsOf = (place: Place): Omit<DestinationSettings, 'accessKey' | 'secretKey'> => ({
  provider: place.provider,
  projectId: place.project_id,
  endpoint: place.endpoint,
  region: place.region,
  bucket: place.bucket,
  useSsl: place.use_ssl
})

const answer = ({ access_key: _access, secret_key: _secret, ...row }: DestinationRow): DestinationAnswer =>
  row
