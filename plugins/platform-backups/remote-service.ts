import type { Clock, SecretPlace, Secrets } from 'busbar/sdk'
import { S3Bucket, S3Error, type S3Settings, s3Endpoint } from 'busbar/sdk/s3'
import { problems } from './problems.js'
import type { RemoteRow, RemoteStore } from './remote-store.js'
import type { RemoteBody, RemoteView } from './schemas.js'
import type { Settings } from './settings.js'

interface RemoteParts {
  readonly store: RemoteStore
  readonly secrets: Secrets
  readonly clock: Clock
  readonly config: Settings
}

/** What was saved over what the environment says; keys in clear. */
interface CurrentRemote extends S3Settings {
  /** Before each name: `busbar/`. */
  readonly prefix: string
  readonly enabled: boolean
}

const nothing: RemoteRow = {
  enabled: null,
  endpoint: null,
  region: null,
  bucket: null,
  prefix: null,
  use_ssl: null,
  access_key: null,
  secret_key: null
}
const place = (column: 'access_key' | 'secret_key'): SecretPlace => ({
  table: 'remote',
  column,
  row: 'remote'
})

/** Where archives are uploaded to. */
export class RemoteService {
  constructor(private readonly parts: RemoteParts) {}

  async view(): Promise<{ readonly isEnabled: boolean; readonly remote: RemoteView | null }> {
    const current = this.#current((await this.parts.store.read()) ?? nothing)
    return { isEnabled: current.enabled, remote: current.bucket === '' ? null : viewOf(current) }
  }

  async update(body: RemoteBody): Promise<RemoteView> {
    const { store, clock } = this.parts
    const row = this.#changed((await store.read()) ?? nothing, body)
    const current = this.#current(row)
    if (current.enabled) {
      if (current.bucket === '') throw problems.bucketMissing()
      const { accessKey, secretKey } = this.#open(row)
      if (accessKey === '' || secretKey === '') throw problems.keysMissing()
    }
    await store.write(row, clock.now())
    return viewOf(current)
  }

  /** Throws a `Problem` where the remote is off or does not work. */
  async test(signal: AbortSignal): Promise<void> {
    const remote = await this.open()
    if (remote === undefined) throw problems.remoteOff()
    await remote.remote.test({ signal }).catch((error: unknown) => {
      throw error instanceof S3Error ? problems.remoteFailed({ reason: error.message }) : error
    })
  }

  /** Settings that are not saved; nothing is changed. */
  async try(
    body: RemoteBody,
    signal: AbortSignal
  ): Promise<{ readonly ok: boolean; readonly error?: string }> {
    const settings = this.#open(this.#changed((await this.parts.store.read()) ?? nothing, body))
    if (settings.bucket === '') return { ok: false, error: 'bucket is empty' }
    if (settings.accessKey === '' || settings.secretKey === '')
      return { ok: false, error: 'access_key or secret_key is empty' }
    try {
      await new S3Bucket(settings).test({ signal })
      return { ok: true }
    } catch (error) {
      if (error instanceof S3Error) return { ok: false, error: error.message }
      throw error
    }
  }

  /** For a run; undefined where archives are not uploaded. */
  async open(): Promise<{ readonly remote: S3Bucket; readonly prefix: string } | undefined> {
    const found = await this.settings()
    return found && { remote: new S3Bucket(found.bucket), prefix: found.prefix }
  }

  /** Undefined where archives are not uploaded. */
  async settings(): Promise<{ readonly bucket: S3Settings; readonly prefix: string } | undefined> {
    const settings = this.#open((await this.parts.store.read()) ?? nothing)
    if (!settings.enabled) return undefined
    if (settings.bucket === '') throw problems.bucketMissing()
    const { endpoint, region, bucket, useSsl, accessKey, secretKey, prefix } = settings
    return { bucket: { endpoint, region, bucket, useSsl, accessKey, secretKey }, prefix }
  }

  /** Throws a `Problem` where keys that somebody else has entered would go elsewhere: who may write settings may not read them. */
  #changed(before: RemoteRow, body: RemoteBody): RemoteRow {
    const row = this.#merged(before, body)
    const place = this.#current(row)
    const hasBoth = Boolean(body.access_key) && Boolean(body.secret_key)
    if (!hasBoth && this.#hasKeys(before) && isElsewhere(this.#current(before), place))
      throw problems.keysAgain({ host: hostName(place) })
    return row
  }

  #hasKeys({ access_key: accessKey, secret_key: secretKey }: RemoteRow): boolean {
    const { s3_access_key: givenAccessKey, s3_secret_key: givenSecretKey } = this.parts.config
    return [accessKey ?? givenAccessKey, secretKey ?? givenSecretKey].some(key => Boolean(key))
  }

  #merged(row: RemoteRow, body: RemoteBody): RemoteRow {
    const { secrets } = this.parts
    const sealed = (column: 'access_key' | 'secret_key'): string | null => {
      const given = body[column]
      // An empty field is what a form sends that shows no key.
      return given === undefined || given === '' ? row[column] : secrets.seal(given, place(column))
    }
    return {
      enabled: body.enabled ?? row.enabled,
      endpoint: body.endpoint === undefined ? row.endpoint : hostOf(body.endpoint),
      region: body.region?.trim() ?? row.region,
      bucket: body.bucket?.trim() ?? row.bucket,
      prefix: body.prefix?.trim() ?? row.prefix,
      use_ssl: body.use_ssl ?? row.use_ssl,
      access_key: sealed('access_key'),
      secret_key: sealed('secret_key')
    }
  }

  #current(row: RemoteRow): Omit<CurrentRemote, 'accessKey' | 'secretKey'> {
    const { config } = this.parts
    return {
      enabled: row.enabled ?? config.remote_enabled,
      endpoint: row.endpoint ?? config.s3_endpoint ?? '',
      region: row.region || config.s3_region,
      bucket: row.bucket ?? config.s3_bucket ?? '',
      prefix: row.prefix ?? config.s3_prefix,
      useSsl: row.use_ssl ?? config.s3_use_ssl
    }
  }

  #open(row: RemoteRow): CurrentRemote {
    const { config, secrets } = this.parts
    const opened = (column: 'access_key' | 'secret_key', fallback: string | undefined): string => {
      const sealed = row[column]
      if (sealed === null) return fallback ?? ''
      try {
        return secrets.open(sealed, place(column))
      } catch {
        throw problems.secretUnreadable()
      }
    }
    return {
      ...this.#current(row),
      accessKey: opened('access_key', config.s3_access_key),
      secretKey: opened('secret_key', config.s3_secret_key)
    }
  }
}

const viewOf = ({
  endpoint,
  region,
  bucket,
  prefix,
  useSsl
}: Omit<CurrentRemote, 'accessKey' | 'secretKey'>): RemoteView => ({
  endpoint,
  region,
  bucket,
  prefix,
  use_ssl: useSsl
})

type Place = Pick<S3Settings, 'endpoint' | 'region' | 'useSsl'>

const hostName = ({ endpoint, region }: Place): string => endpoint || `s3.${region}.amazonaws.com`

/** Whether keys would go somewhere else, or in clear. */
const isElsewhere = (before: Place, place: Place): boolean =>
  hostName(before) !== hostName(place) || (before.useSsl && !place.useSsl)

function hostOf(endpoint: string): string {
  const host = s3Endpoint(endpoint)
  if (host === undefined) throw problems.endpointInvalid({ endpoint: endpoint.trim() })
  return host
}
