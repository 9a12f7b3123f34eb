import { createHash, randomBytes } from 'node:crypto'
import { existsSync } from 'node:fs'
import { mkdir, writeFile } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import pg from 'pg'
import { pino } from 'pino'
import { isAlive, startEmbedded, stopEmbedded } from '../../embedded-postgres/index.js'

/** A database of a test's own. */
export interface TestDatabase {
  readonly url: string
  drop(): Promise<void>
}

interface TestDatabaseOptions {
  /** Made once per `key` and copied from then on: a database with its migrations done, for example. */
  readonly template?: { readonly key: string; prepare(url: string): Promise<void> }
}

const lockSpace = 0x74657374

/**
 * A fresh, empty database on the server named by TEST_DATABASE_URL, or else on a PostgreSQL of the test
 * run's own, which all its processes share and the first of them starts (`.lab/pg` beside package.json).
 */
export async function createDatabase({ template }: TestDatabaseOptions = {}): Promise<TestDatabase> {
  const server = await serverUrl()
  const name = `t_${process.pid}_${randomBytes(6).toString('hex')}`
  await withClient(server, async client => {
    await sweep(client)
    const source = template === undefined ? 'template1' : await prepareTemplate(client, server, template)
    // By the write-ahead log, as is usual, it takes the server three times the work.
    await client.query(`create database ${name} template ${source} strategy file_copy`)
  })
  return {
    url: onDatabase(server, name),
    drop: async () =>
      await withClient(server, async client => {
        await client.query(`drop database if exists ${name} with (force)`)
      })
  }
}

/** Ends the test run's own PostgreSQL. Nothing is kept of a database that was not dropped. */
export async function stopCluster(): Promise<void> {
  if (process.env.TEST_DATABASE_URL) return
  await stopEmbedded(clusterDirectory())
}

/** The databases that `createDatabase` made and that still exist; none while the server does not run. */
export async function listTestDatabases(): Promise<string[]> {
  const isRunning = existsSync(join(clusterDirectory(), 'postmaster.pid'))
  if (!process.env.TEST_DATABASE_URL && !isRunning) return []
  let names: string[] = []
  await withClient(await serverUrl(), async client => {
    const { rows } = await client.query<{ datname: string }>(
      String.raw`select datname from pg_database where datname ~ '^t_\d+_[0-9a-f]+$' order by 1`
    )
    names = rows.map(({ datname }) => datname)
  })
  return names
}

let started: Promise<string> | undefined

async function serverUrl(): Promise<string> {
  if (process.env.TEST_DATABASE_URL) return process.env.TEST_DATABASE_URL
  started ??= startCluster()
  return await started
}

async function startCluster(): Promise<string> {
  const directory = clusterDirectory()
  await mkdir(directory, { recursive: true, mode: 0o711 })
  await writeFile(join(dirname(directory), '.gitignore'), '*\n')
  return (await startEmbedded({ directory, log: pino({ level: 'silent' }), fsync: false, detached: true }))
    .url
}

function clusterDirectory(): string {
  for (let at = process.cwd(); at !== dirname(at); at = dirname(at)) {
    if (existsSync(join(at, 'package.json'))) return join(at, '.lab', 'pg')
  }
  return join(process.cwd(), '.lab', 'pg')
}

/** Databases of this machine's test processes that died before they could drop them. */
async function sweep(client: pg.Client): Promise<void> {
  if (process.env.TEST_DATABASE_URL || hasSwept) return
  hasSwept = true
  const { rows } = await client.query<{ datname: string }>(
    String.raw`select datname from pg_database where datname ~ '^t_\d+_[0-9a-f]+$'`
  )
  for (const { datname } of rows) {
    if (isAlive(Number(datname.split('_')[1]))) continue
    await client.query(`drop database if exists ${datname} with (force)`).catch(() => {
      /* another process sweeps too */
    })
  }
}
let hasSwept = false

async function prepareTemplate(
  client: pg.Client,
  server: string,
  { key, prepare }: NonNullable<TestDatabaseOptions['template']>
): Promise<string> {
  const name = `template_${createHash('sha256').update(key).digest('hex').slice(0, 16)}`
  const isThere = async (): Promise<boolean> =>
    (await client.query('select 1 from pg_database where datname = $1', [name])).rowCount === 1
  if (await isThere()) return name
  const lock = [lockSpace, parseInt(name.slice(-7), 16)]
  await client.query('select pg_advisory_lock($1, $2)', lock)
  try {
    if (await isThere()) return name
    const fresh = `${name}_${process.pid}`
    await client.query(`drop database if exists ${fresh} with (force)`)
    await client.query(`create database ${fresh}`)
    await prepare(onDatabase(server, fresh))
    await client.query(`alter database ${fresh} rename to ${name}`)
    return name
  } finally {
    await client.query('select pg_advisory_unlock($1, $2)', lock)
  }
}

async function withClient<T>(url: string, run: (client: pg.Client) => Promise<T>): Promise<T> {
  const client = new pg.Client({ connectionString: url })
  await client.connect()
  try {
    return await run(client)
  } finally {
    await client.end()
  }
}

const onDatabase = (url: string, name: string): string => url.replace(/^(\w+:\/\/[^/]*\/)[^?]*/, `$1${name}`)
