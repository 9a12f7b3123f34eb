import { createReadStream, createWriteStream } from 'node:fs'
import { mkdtemp, readFile, rename, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Transform } from 'node:stream'
import { pipeline } from 'node:stream/promises'
import { type Database, definePlugin, kernel, Problem } from 'busbar/sdk'
import type { Test } from 'tap'
import { type BackupResource, type BackupSource, backupSources, type SourceKind } from '../api.js'

/** How the sources of the test behave, and what was asked of them. */
export interface Probe {
  /** Where each "database" is a file of lines, by its id. */
  readonly directory: string
  /** How many bytes of dumps were taken. */
  dumped: number
  /** In order: `dump`, `restore`, `settle backup`, … with the id behind. */
  readonly calls: string[]
  backupRefusal: string | null
  /** Whether that ends by itself. */
  refusalPasses: boolean
  restoreRefusal: string | null
  /** Why schedules may name none of its databases. */
  choiceRefusal: string | null
  /** What `end` of a dump rejects with. */
  endError: string | null
  /** After so many bytes the dump fails as a program does that is killed. */
  failAfter: number | null
  /** Dumps stand still behind their first bytes until it resolves. */
  hold: Promise<void> | null
  /** Restores wait for it before they read. */
  holdRestore: Promise<void> | null
  /** Drills wait for it before they read. */
  holdCheck: Promise<void> | null
  /** Restores wait for it when what is restored is in its place. */
  holdExchanged: Promise<void> | null
  /** The same, when they have told so. */
  holdServing: Promise<void> | null
  /** Whether what is put back behind a restore finds what was restored at work. */
  isExchanged: boolean
  /** Whether it finds that somebody has put it back before. */
  isUndone: boolean
  /** What is put back behind a restore rejects with it: an engine is away. */
  settleError: string | null
  /** What is put back behind a restore waits for it. */
  holdSettle: Promise<void> | null
  /** What restores reject with after some of the dump. */
  restoreError: string | null
  free: number | null
  /** Whether a dump is read once, into something beside. */
  beside: boolean
  /** Rows that a dump says it has; what is in the file otherwise. */
  rows: number | null
  checkError: string | null
  engine: string
  databases: readonly string[]
  /** Applications of which the source of volumes says that they are gone. */
  readonly ended: Set<string>
}

export async function makeProbe(t: Test): Promise<Probe> {
  const directory = await mkdtemp(join(tmpdir(), 'busbar-probe-'))
  t.teardown(async () => {
    await rm(directory, { recursive: true, force: true })
  })
  return {
    directory,
    dumped: 0,
    calls: [],
    backupRefusal: null,
    refusalPasses: false,
    restoreRefusal: null,
    choiceRefusal: null,
    endError: null,
    failAfter: null,
    hold: null,
    holdRestore: null,
    holdCheck: null,
    holdExchanged: null,
    holdServing: null,
    isExchanged: false,
    isUndone: false,
    settleError: null,
    holdSettle: null,
    restoreError: null,
    free: null,
    beside: false,
    rows: null,
    checkError: null,
    engine: 'postgres',
    databases: ['shop', 'stock'],
    ended: new Set()
  }
}

interface Row {
  readonly id: string
  readonly project_id: string
  readonly name: string
  readonly application_id: string | null
}

const linesOf = (text: string): number => text.split('\n').filter(line => line !== '').length

/** Files stand for what the real sources read from containers: real streams, with faults on demand. */
class ProbeSource implements BackupSource {
  constructor(
    private readonly kind: SourceKind,
    private readonly db: Database,
    private readonly probe: Probe
  ) {}

  #file(id: string): string {
    return join(this.probe.directory, id)
  }

  async find(id: string, projectId: string): Promise<BackupResource | undefined> {
    const [row] = await this.db.sql<Row>(
      `select id, project_id, name, application_id from $schema.${this.kind} where id = :id and project_id = :projectId`,
      { id, projectId }
    )
    if (row === undefined) return undefined
    const { probe } = this
    const isVolume = this.kind === 'volume'
    return {
      id,
      projectId,
      name: row.name,
      slug: row.name.toLowerCase(),
      engine: isVolume ? 'volume' : probe.engine,
      version: isVolume ? '' : '15',
      application: row.application_id === null ? null : { id: row.application_id, name: 'Web' },
      mountPath: isVolume ? '/data' : null,
      databases: isVolume ? [] : probe.databases,
      backupRefusal: probe.backupRefusal,
      refusalPasses: probe.refusalPasses,
      restoreRefusal: probe.restoreRefusal
    }
  }

  async choiceRefusal() {
    return this.probe.choiceRefusal
  }

  async dump(id: string, options: { readonly quiesce: boolean }) {
    const { probe } = this
    probe.calls.push(`dump ${id}${options.quiesce ? ' quiesced' : ''}`)
    let passed = 0
    const content = createReadStream(this.#file(id)).pipe(
      new Transform({
        transform: (chunk: Buffer, _encoding, done) => {
          passed += chunk.length
          probe.dumped += chunk.length
          const failed = probe.failAfter !== null && passed > probe.failAfter
          void (probe.hold ?? Promise.resolve()).then(() => {
            if (failed) done(new Error('the program that dumps was killed'))
            else done(null, chunk)
          })
        }
      })
    )
    return {
      format: this.kind === 'volume' ? 'tar' : 'lines',
      content,
      end: async () => {
        if (probe.endError !== null) throw new Error(probe.endError)
        return { rows: probe.rows ?? linesOf(await readFile(this.#file(id), 'utf8')) }
      }
    }
  }

  async restore(
    id: string,
    { content }: Parameters<BackupSource['restore']>[1],
    { restored }: Parameters<BackupSource['restore']>[2]
  ) {
    const { probe, db } = this
    probe.calls.push(`restore ${id}`)
    await probe.holdRestore
    const beside = `${this.#file(id)}.beside`
    if (probe.restoreError !== null) {
      for await (const chunk of content) if (chunk.length > 0) break
      throw new Error(probe.restoreError)
    }
    await pipeline(content, createWriteStream(beside))
    await rename(beside, this.#file(id))
    probe.calls.push(`exchanged ${id}`)
    await probe.holdExchanged
    // As a source that exchanges nothing never does.
    if (this.kind === 'volume') return
    await db.transaction(async tx => await restored(tx))
    probe.calls.push(`serving ${id}`)
    await probe.holdServing
  }

  restoresBeside() {
    return this.probe.beside
  }

  async settle(...[id, what, { restored, undone }]: Parameters<BackupSource['settle']>) {
    const { probe, db } = this
    probe.calls.push(`settle ${what} ${id}`)
    // A drill may end while something is restored.
    if (what !== 'restore') return
    await probe.holdSettle
    if (probe.settleError !== null) throw new Error(probe.settleError)
    if (probe.isUndone) undone?.()
    if (probe.isExchanged) await db.transaction(async tx => await restored?.(tx))
    await rm(`${this.#file(id)}.beside`, { force: true })
  }

  async check(of: Parameters<BackupSource['check']>[0], { content }: Parameters<BackupSource['check']>[1]) {
    const { probe } = this
    probe.calls.push(`check ${of.id}`)
    await probe.holdCheck
    const copy = join(probe.directory, 'copy')
    await pipeline(content, createWriteStream(copy))
    const rows = linesOf(await readFile(copy, 'utf8'))
    await rm(copy)
    if (probe.checkError !== null) throw new Error(probe.checkError)
    return { rows, detail: '2 databases' }
  }

  async space() {
    return { free: this.probe.free }
  }

  async blueprint(id: string) {
    return this.kind === 'database' ? `credentials of ${id}` : null
  }

  async recreate(
    of: { readonly id: string; readonly projectId: string; readonly name: string },
    blueprint: string
  ) {
    const { db, probe, kind } = this
    if (blueprint !== `credentials of ${of.id}`)
      throw new Problem(409, 'E_DATABASE_TAKEN', 'another blueprint')
    const [taken] = await db.sql(
      `select from $schema.${kind} where name = :name and project_id = :projectId`,
      {
        name: of.name,
        projectId: of.projectId
      }
    )
    if (taken !== undefined) throw new Problem(409, 'E_DATABASE_TAKEN', `the name ${of.name} is taken`)
    const id = of.id.replace(/^./, first => (first === 'f' ? 'e' : 'f'))
    await db.sql(`insert into $schema.${kind} (id, project_id, name) values (:id, :projectId, :name)`, {
      id,
      projectId: of.projectId,
      name: of.name
    })
    await writeFile(join(probe.directory, id), '')
    return { id, answer: answerOf(id, of) }
  }

  async heir({ applicationId, name, projectId }: Parameters<NonNullable<BackupSource['heir']>>[0]) {
    if (this.probe.ended.has(applicationId)) return 'ended'
    const [row] = await this.db.sql<Row>(
      `select id from $schema.${this.kind} where application_id = :applicationId and name = :name`,
      { applicationId, name }
    )
    return row && (await this.find(row.id, projectId))
  }

  async ready(id: string) {
    this.probe.calls.push(`ready ${id}`)
  }
}

const answerOf = (
  id: string,
  { projectId, name }: { readonly projectId: string; readonly name: string }
) => ({
  id,
  project_id: projectId,
  name,
  slug: name.toLowerCase(),
  type: 'postgres',
  version: '15',
  status: 'creating',
  image: null,
  image_digest: null,
  source_kind: null,
  source_ref: null,
  backup_command: null,
  backup_mode: 'none',
  restore_command: null,
  data_dir: null,
  internal_host: null,
  credentials_encrypted: 'stored',
  container_port: null,
  host_port: null,
  internal_port: null,
  cpu_limit: 0,
  memory_limit: 0,
  container_missing: false,
  created_at: new Date(),
  external_access: null,
  volume: { name: `${name}-vol`, size_bytes: null }
})

/**
 * A plugin that keeps "databases" and "volumes", as the real ones do: kinds of resources, and sources of backups. Those are recorded also
 * while they are off, in the order of their ids, and of two that declare a kind the first one has it.
 */
export const probePlugin = (probe: Probe) => ({
  manifest: {
    id: 'backup-probe',
    requires: { projects: '^0.1.0', applications: '^0.1.0' },
    optional: { backups: '^0.1.0' },
    grants: ['database'] as const
  },
  definition: definePlugin({
    id: 'backup-probe',
    needs: { db: kernel.database },
    migrations: [
      {
        name: '001-create-probe',
        phase: 'expand',
        sql: `
          create table $schema.database (
            id uuid primary key, project_id uuid not null, name text not null, application_id uuid, deleting_at timestamptz);
          create table $schema.volume (
            id uuid primary key, project_id uuid not null, name text not null, application_id uuid, deleting_at timestamptz);
        `
      }
    ],
    start: ({ use }) => use,
    resources: resource => {
      resource({ kind: 'database', table: 'database', name: 'name', parents: { project: 'project_id' } })
      resource({ kind: 'volume', table: 'volume', name: 'name', parents: { application: 'application_id' } })
    },
    contributes: (contribute, { db }) => {
      contribute(backupSources, 'database', new ProbeSource('database', db, probe))
      contribute(backupSources, 'volume', new ProbeSource('volume', db, probe))
    }
  })
})
