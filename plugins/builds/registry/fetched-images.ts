import { createHash } from 'node:crypto'
import type { Clock, Database } from 'busbar/sdk'
import type { ImageNames } from './image-names.js'
import { fullRepository, versionOf } from './local-image.js'

/** Of the names under which the engine holds what was fetched. Nobody is told the rest of one, and nobody can guess it. */
export const fetchedPrefix = 'busbar-fetched-'

/** Who a registry has handed an image to: one application, or everybody. */
export type Holder = string
export const everybody: Holder = ''

/** Stands for everybody where names of images have a part that nobody can guess. */
const nobody = '00000000-0000-0000-0000-000000000000'

/** An image that a registry has handed out, to the last byte. */
export interface FetchedImage {
  readonly holder: Holder
  /** As `fullRepository` writes it. */
  readonly repository: string
  /** Of what its name stood for: `sha256:…`. */
  readonly digest: string
  /** What the engine knows it by. */
  readonly handle: string
  /** Unpacked, the lowest first. */
  readonly layers: readonly string[]
}

/** Which images registries have handed out, and to whom. What is not here nobody has been handed. */
export interface FetchedImages {
  /** What the name stood for when it was last fetched for this application, or for everybody. */
  find(applicationId: string, name: string): Promise<FetchedImage | undefined>
  /** Those that begin with this layer and that the holder has been handed, or everybody. */
  withFirstLayer(holder: Holder, layer: string): Promise<readonly FetchedImage[]>
  /** True when what has one of these names on the engine was handed to the application, or to everybody. */
  isOpenTo(applicationId: string, names: readonly string[]): Promise<boolean>
  /** The name for what is about to be fetched: the same for all who fetch it for this holder, at once or one after the other. */
  begin(wanted: Pick<FetchedImage, 'holder' | 'repository' | 'digest'>): Promise<string>
  /** It has come: from now on the holder may use it by its digest, and by the name that it was fetched by. */
  settle(image: FetchedImage, name: string): Promise<void>
  /** Forgets what this name with a digest stands for. Returns the names on the engine that nobody needs any more. */
  release(applicationId: string, name: string): Promise<readonly string[]>
  /** The same for all that this application alone was handed. */
  releaseAll(applicationId: string): Promise<readonly string[]>
  /** Names of fetches that were cut off: they began before, and none of the name ever came to an end. */
  begunBefore(time: Date): Promise<readonly string[]>
  forgetFetch(handle: string): Promise<void>
}

export class FetchedImageStore implements FetchedImages {
  constructor(
    private readonly db: Database,
    private readonly clock: Pick<Clock, 'now'>,
    private readonly names: ImageNames
  ) {}

  async find(applicationId: string, name: string): Promise<FetchedImage | undefined> {
    const [found] = await this.db.sql<FetchedImage>(
      `
      select ${columns} from $schema.fetched_image
      where holder in ('', :applicationId) and repository = :repository and version = :version
      order by fetched_at desc limit 1`,
      { applicationId, repository: fullRepository(name), version: versionOf(name) }
    )
    return found
  }

  async withFirstLayer(holder: Holder, layer: string): Promise<readonly FetchedImage[]> {
    return await this.db.sql<FetchedImage>(
      `select distinct on (handle) ${columns} from $schema.fetched_image where holder in ('', ?) and layers[1] = ?`,
      [holder, layer]
    )
  }

  async isOpenTo(applicationId: string, names: readonly string[]): Promise<boolean> {
    const rows = await this.db.sql(
      `select from $schema.fetched_image where holder in ('', :applicationId) and handle = any(:names) limit 1`,
      { applicationId, names: [...names] }
    )
    return rows.length > 0
  }

  async begin({
    holder,
    repository,
    digest
  }: Pick<FetchedImage, 'holder' | 'repository' | 'digest'>): Promise<string> {
    const token = await this.names.tokenOf(holder === everybody ? nobody : holder)
    const hash = createHash('sha256').update(`${token} ${repository} ${digest}`).digest('hex')
    const handle = `${fetchedPrefix}${hash.slice(0, 40)}:latest`
    await this.db.sql(
      `
      insert into $schema.fetch_under_way (handle, begun_at) values (:handle, :now)
      on conflict (handle) do update set begun_at = excluded.begun_at`,
      { handle, now: this.clock.now() }
    )
    return handle
  }

  async settle(image: FetchedImage, name: string): Promise<void> {
    const { layers, ...rest } = image
    await this.db.sql(
      `
      with settled as (delete from $schema.fetch_under_way where handle = :handle)
      insert into $schema.fetched_image (holder, repository, version, digest, handle, layers, fetched_at)
      select distinct :holder, :repository, unnest(cast(:versions as text[])), :digest, :handle, cast(:layers as text[]), cast(:now as timestamptz)
      on conflict (holder, repository, version) do update
      set digest = excluded.digest, handle = excluded.handle, layers = excluded.layers, fetched_at = excluded.fetched_at`,
      { ...rest, layers: [...layers], versions: [versionOf(name), image.digest], now: this.clock.now() }
    )
  }

  async release(applicationId: string, name: string): Promise<readonly string[]> {
    return await this.#unneeded(
      `holder in ('', :applicationId) and repository = :repository and digest = :digest`,
      { applicationId, repository: fullRepository(name), digest: versionOf(name) }
    )
  }

  async releaseAll(applicationId: string): Promise<readonly string[]> {
    return await this.#unneeded('holder = :applicationId', { applicationId })
  }

  async #unneeded(where: string, bindings: Readonly<Record<string, string>>): Promise<readonly string[]> {
    const rows = await this.db.sql<{ handle: string }>(
      `delete from $schema.fetched_image where ${where} returning handle`,
      bindings
    )
    return [...new Set(rows.map(({ handle }) => handle))]
  }

  async begunBefore(time: Date): Promise<readonly string[]> {
    const rows = await this.db.sql<{ handle: string }>(
      `
      with ended as (
        delete from $schema.fetch_under_way u
        where begun_at < :time and exists (select from $schema.fetched_image f where f.handle = u.handle)
      )
      select handle from $schema.fetch_under_way u
      where begun_at < :time and not exists (select from $schema.fetched_image f where f.handle = u.handle)`,
      { time }
    )
    return rows.map(({ handle }) => handle)
  }

  async forgetFetch(handle: string): Promise<void> {
    await this.db.sql('delete from $schema.fetch_under_way where handle = ?', [handle])
  }
}

const columns = 'holder, repository, digest, handle, layers'
