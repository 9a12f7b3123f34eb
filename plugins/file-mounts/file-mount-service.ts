import { randomUUID } from 'node:crypto'
import type { ApplicationRegistry } from 'busbar/api/applications'
import type { Mounted } from 'busbar/api/containers'
import type { ContainerParts, MountPaths } from 'busbar/api/deployments'
import type { Clock, Database, Log, Page, ProjectId, Rows, Secrets, SignedInCaller, Tx } from 'busbar/sdk'
import { fileModeOf, modeBits, usualMode } from './file-mode.js'
import type { FileMountChanges, FileMountRow, FileMountStore } from './file-mount-store.js'
import { problems } from './problems.js'
import { type CreateBody, type FileMountAnswer, mostBytes, type UpdateBody } from './schemas.js'

interface FileMountServiceParts {
  readonly db: Database
  readonly store: FileMountStore
  readonly secrets: Secrets
  readonly applications: ApplicationRegistry
  readonly mountPaths: MountPaths
  readonly clock: Clock
  readonly log: Log
}

type CallerKind = Pick<SignedInCaller, 'kind'>

/** Of one application: all of them are in memory while a container is made. */
const mostFiles = 100
const mostBytesTogether = 4 * 2 ** 20

export class FileMountService {
  constructor(private readonly parts: FileMountServiceParts) {}

  /** A token sees no content, a session what is not secret. */
  async list(
    project: ProjectId,
    applicationId: string,
    caller: CallerKind,
    page: Page
  ): Promise<Rows<FileMountAnswer>> {
    const { store } = this.parts
    if (!(await store.hasApplication(project, applicationId)))
      throw problems.applicationGone({ applicationId })
    const { rows, total } = await store.list(applicationId, page)
    return { rows: rows.map(row => this.#answer(row, caller)), total }
  }

  async create(
    project: ProjectId,
    applicationId: string,
    caller: CallerKind,
    body: CreateBody
  ): Promise<FileMountAnswer> {
    const { db, store, applications, mountPaths, clock } = this.parts
    const id = randomUUID()
    const row: FileMountRow = {
      id,
      mount_path: body.mount_path,
      bytes: sizeOf(body.content),
      content: this.#seal(id, body.content),
      is_secret: body.is_secret ?? false,
      file_mode: checkedMode(body.file_mode ?? usualMode),
      created_at: clock.now()
    }
    await db.transaction(async tx => {
      await mountPaths.claim(applicationId, { kind: 'file', path: row.mount_path }, tx)
      if (!(await store.hasApplication(project, applicationId, tx)))
        throw problems.applicationGone({ applicationId })
      const sizes = await this.#hold(applicationId, tx)
      if (sizes.length >= mostFiles) throw problems.tooMany({ limit: mostFiles })
      checkTogether([...sizes, row])
      await store.insert(applicationId, row, tx)
      await applications.markConfigChanged(applicationId, tx)
    })
    return this.#answer(row, caller)
  }

  /** What is left out stays: nobody who cannot see a content has to send it. */
  async update(
    applicationId: string,
    fileMountId: string,
    caller: CallerKind,
    { content, is_secret, file_mode }: UpdateBody
  ): Promise<FileMountAnswer> {
    const { db, store, applications } = this.parts
    const isNew = content !== undefined && content !== null
    const changes: FileMountChanges = {
      ...(isNew && { bytes: sizeOf(content), content: this.#seal(fileMountId, content) }),
      ...(is_secret !== undefined && { is_secret }),
      ...(file_mode !== undefined && { file_mode: checkedMode(file_mode) })
    }
    const row = await db.transaction(async tx => {
      const sizes = await this.#hold(applicationId, tx)
      const stored = await store.find(applicationId, fileMountId, tx)
      if (stored === undefined) throw problems.notFound({ fileMountId })
      if (stored.is_secret && is_secret === false && !isNew)
        throw problems.staysSecret({ path: stored.mount_path })
      const changed = { ...stored, ...changes }
      if (changed.bytes > stored.bytes)
        checkTogether([...sizes.filter(({ id }) => id !== fileMountId), changed])
      if (Object.keys(changes).length > 0) {
        await store.change(fileMountId, changes, tx)
        await applications.markConfigChanged(applicationId, tx)
      }
      return changed
    })
    return this.#answer(row, caller)
  }

  async delete(applicationId: string, fileMountId: string): Promise<{ status: string }> {
    const { db, store, applications } = this.parts
    await db.transaction(async tx => {
      if (!(await store.remove(applicationId, fileMountId, tx))) throw problems.notFound({ fileMountId })
      await applications.markConfigChanged(applicationId, tx)
    })
    return { status: 'deleted' }
  }

  async reveal(applicationId: string, fileMountId: string): Promise<{ content: string }> {
    const row = await this.parts.store.find(applicationId, fileMountId)
    if (row === undefined) throw problems.notFound({ fileMountId })
    return { content: this.#open(row) ?? unreadable(row) }
  }

  /** All or none: without one of its files a container would run by other rules than it was given. */
  async partsFor(applicationId: string): Promise<ContainerParts> {
    const rows = await this.parts.store.mounted(applicationId)
    const opened = rows.map(row => ({ row, content: this.#open(row) ?? unreadable(row) }))
    return {
      volumes: [],
      files: opened.map(({ row, content }) => ({
        path: row.mount_path,
        content: Buffer.from(content),
        mode: modeBits(row.file_mode)
      })),
      hidden: opened.flatMap(({ row, content }) => (row.is_secret ? [content] : []))
    }
  }

  async mountsOf(applicationId: string, tx: Tx): Promise<readonly Mounted[]> {
    const rows = await this.parts.store.sizes(applicationId, tx)
    return rows.map(({ mount_path: path }) => ({ kind: 'file', path }))
  }

  async #hold(applicationId: string, tx: Tx): ReturnType<FileMountStore['sizes']> {
    const { store } = this.parts
    await store.hold(applicationId, tx)
    return await store.sizes(applicationId, tx)
  }

  #seal(row: string, content: string): string {
    return this.parts.secrets.seal(content, { table: 'file_mount', column: 'content', row })
  }

  /** Undefined when the key that sealed it is gone: the caller decides what that means. */
  #open({ id, mount_path: path, content }: FileMountRow): string | undefined {
    const { secrets, log } = this.parts
    try {
      return secrets.open(content, { table: 'file_mount', column: 'content', row: id })
    } catch (error) {
      log.error({ err: error, fileMountId: id, path }, 'the content of a file mount cannot be decrypted')
      return undefined
    }
  }

  #answer(row: FileMountRow, { kind }: CallerKind): FileMountAnswer {
    const { id, mount_path, is_secret, file_mode, created_at } = row
    const content = kind === 'session' && !is_secret ? this.#open(row) : undefined
    return {
      id,
      mount_path,
      ...(content !== undefined && { content }),
      content_masked: content === undefined,
      is_secret,
      file_mode,
      created_at
    }
  }
}

function sizeOf(content: string): number {
  const bytes = Buffer.byteLength(content)
  if (bytes > mostBytes) throw problems.tooLong({ bytes, limit: mostBytes })
  return bytes
}

function checkedMode(text: string): string {
  const mode = fileModeOf(text)
  if (mode === undefined) throw problems.badMode({ mode: text })
  return mode
}

function checkTogether(files: ReadonlyArray<Pick<FileMountRow, 'bytes'>>): void {
  const bytes = files.reduce((sum, file) => sum + file.bytes, 0)
  if (bytes > mostBytesTogether) throw problems.tooMuch({ bytes, limit: mostBytesTogether })
}

function unreadable({ mount_path: path }: FileMountRow): never {
  throw problems.unreadable({ path })
}
