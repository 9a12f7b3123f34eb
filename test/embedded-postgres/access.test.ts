import { execFile, spawn } from 'node:child_process'
import { once } from 'node:events'
import { chmod, chown, mkdir, mkdtemp, readdir, readFile, rm, stat, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { promisify } from 'node:util'
import pg from 'pg'
import { pino } from 'pino'
import { type Test, test } from 'tap'
import { findBinaries } from '../../embedded-postgres/binaries.js'
import { startEmbedded } from '../../embedded-postgres/index.js'
import { requireRoot } from '../../lab/requirements.js'

const log = pino({ level: 'silent' })
const onLinux = { skip: process.platform === 'linux' ? false : 'elsewhere root has no other account' }
const nobody = { uid: 65_534, gid: 65_534 }

async function folder(t: Test): Promise<string> {
  const path = await mkdtemp(join(tmpdir(), 'busbar-access-'))
  await chmod(path, 0o711)
  t.teardown(async () => {
    await rm(path, { recursive: true, force: true })
  })
  return path
}

async function ask<Row extends object>(connection: pg.ClientConfig, text: string): Promise<Row[]> {
  const client = new pg.Client(connection)
  client.on('error', () => {})
  await client.connect()
  try {
    return (await client.query<Row>(text)).rows
  } finally {
    await client.end()
  }
}

const socketOf = (url: string): string => new URL(url).searchParams.get('host') ?? ''
const wrongPassword = { code: '28P01' }

/** What lets in: the rules that are no comment. */
const rulesOf = async (directory: string): Promise<string[]> =>
  (await readFile(join(directory, 'pg18', 'pg_hba.conf'), 'utf8'))
    .split('\n')
    .filter(line => line !== '' && !line.startsWith('#'))

/** The users whose processes serve the database, and all arguments that the machine shows of them. */
async function processesOf(directory: string): Promise<{ uids: number[]; shown: string }> {
  const pid = (await readFile(join(directory, 'pg18', 'postmaster.pid'), 'utf8')).split('\n')[0] ?? ''
  const { stdout } = await promisify(execFile)('ps', ['-o', 'uid=,args=', 'e', '--pid', pid, '--ppid', pid])
  return {
    uids: [
      ...new Set(
        stdout
          .trim()
          .split('\n')
          .map(line => parseInt(line, 10))
      )
    ],
    shown: stdout
  }
}

/**
 * A folder as a version before this one made it, of `nobody` and open to everybody who can reach the socket; its server
 * was killed.
 */
async function oldFolder(t: Test): Promise<string> {
  const directory = await folder(t)
  const { root } = await findBinaries()
  const made = join(directory, 'made-by-nobody')
  const sockets = join(directory, 'pg18-socket')
  for (const path of [made, sockets]) {
    await mkdir(path, { mode: 0o700 })
    await chown(path, nobody.uid, nobody.gid)
  }
  const environment = { PATH: process.env.PATH ?? '', LC_ALL: 'C' }
  const data = join(made, 'pg18')
  await promisify(execFile)(
    join(root, 'bin', 'initdb'),
    ['-D', data, '-U', 'postgres', '-A', 'trust', '-E', 'UTF8', '--locale=C', '--no-sync'],
    { ...nobody, cwd: '/', env: environment }
  )
  const server = spawn(
    join(root, 'bin', 'postgres'),
    ['-D', data, '-c', 'listen_addresses=', '-c', `unix_socket_directories=${sockets}`],
    { ...nobody, cwd: '/', env: environment, stdio: 'ignore' }
  )
  t.teardown(() => {
    server.kill('SIGQUIT')
  })
  for (let left = 200; ; left--) {
    const isThere = await ask(
      { host: sockets, user: 'postgres', database: 'postgres' },
      'create table if not exists kept as select 1 as one'
    ).then(
      () => true,
      () => false
    )
    if (isThere) break
    if (left === 0) throw new Error('the old server does not answer')
    await sleep(50)
  }
  server.kill('SIGKILL')
  await once(server, 'exit')
  await promisify(execFile)('mv', [data, join(directory, 'pg18')])
  return directory
}

test('nobody gets in without the password, which only the platform can read', async t => {
  const directory = await folder(t)
  const { url, stop } = await startEmbedded({ directory, log, fsync: false })
  t.teardown(stop)
  const password = new URL(url).searchParams.get('password') ?? ''
  t.match(password, /^[\w-]{43}$/)
  const client = { host: socketOf(url), user: 'postgres', database: 'postgres' }
  t.same(await ask({ ...client, password }, 'select 1 as one'), [{ one: 1 }])
  await t.rejects(ask({ ...client, password: `${password}x` }, 'select 1'), wrongPassword)
  await t.rejects(ask(client, 'select 1'))
  t.same(
    await ask<{ stored: string }>(
      { ...client, password },
      "select left(rolpassword, 16) as stored from pg_authid where rolname = 'postgres'"
    ),
    [{ stored: 'SCRAM-SHA-256$1:' }]
  )
  for (const rule of await rulesOf(directory)) t.match(rule, /scram-sha-256$/)
  const file = await stat(join(directory, 'pg18.password'))
  t.same([file.mode & 0o777, file.uid], [0o600, process.getuid?.()])
  t.equal((await stat(join(directory, 'pg18'))).mode & 0o777, 0o700)
  t.equal((await stat(socketOf(url))).mode & 0o777, 0o700)
  t.notMatch((await processesOf(directory)).shown, password, 'neither arguments nor environment show it')
  t.same(
    (await readdir(directory)).filter(name => /password/.test(name)),
    ['pg18.password'],
    'what initdb read is gone'
  )
})

test(
  'started by root it runs as a user of its own, which nothing else on the machine has',
  onLinux,
  async t => {
    if (!requireRoot(t, 'runs a server as another account')) return
    const directory = await folder(t)
    const { url, stop } = await startEmbedded({ directory, log, fsync: false })
    const { uids } = await processesOf(directory)
    t.equal(uids.length, 1)
    const [uid = 0] = uids
    t.not(uid, 0)
    t.not(uid, nobody.uid)
    t.equal((await stat(join(directory, 'pg18'))).uid, uid)
    t.equal((await stat(socketOf(url))).uid, uid)
    const accounts = (await readFile('/etc/passwd', 'utf8'))
      .split('\n')
      .filter(line => Number(line.split(':')[2]) === uid)
    t.same(
      accounts.filter(line => !line.startsWith('busbar-postgres:')),
      []
    )
    // As whoever may become `nobody` does it.
    const asNobody = promisify(execFile)('ls', [join(directory, 'pg18'), socketOf(url)], nobody)
    await t.rejects(asNobody, { message: /Permission denied/ })
    await stop()
    const again = await startEmbedded({ directory, log, fsync: false })
    t.same((await processesOf(directory)).uids, [uid], 'the folder says whose it is')
    await again.stop()
  }
)

test(
  'a folder of nobody that let everybody in is taken over: its rows stay, its files change hands, its rules ask for a password',
  onLinux,
  async t => {
    if (!requireRoot(t, 'runs a server as another account')) return
    const directory = await oldFolder(t)
    t.match((await rulesOf(directory)).join('\n'), /trust/)
    t.equal((await stat(join(directory, 'pg18'))).uid, nobody.uid)
    const { url, stop } = await startEmbedded({ directory, log, fsync: false })
    t.same(await ask({ connectionString: url }, 'select one from kept'), [{ one: 1 }])
    await t.rejects(
      ask({ host: socketOf(url), user: 'postgres', database: 'postgres', password: 'x' }, 'select 1'),
      wrongPassword
    )
    for (const rule of await rulesOf(directory)) t.match(rule, /scram-sha-256$/)
    const { uids } = await processesOf(directory)
    t.not(uids[0], nobody.uid)
    const { stdout } = await promisify(execFile)('find', [
      join(directory, 'pg18'),
      '!',
      '-uid',
      String(uids[0])
    ])
    t.equal(stdout, '', 'no file is left to nobody')
    await stop()
    const again = await startEmbedded({ directory, log, fsync: false })
    t.equal(again.url, url, 'the password stays')
    t.same(await ask({ connectionString: again.url }, 'select one from kept'), [{ one: 1 }])
    await again.stop()
  }
)

test('a password that was lost is made anew, and what was cut off half-way is finished by the next start', async t => {
  const directory = await folder(t)
  const first = await startEmbedded({ directory, log, fsync: false })
  await ask({ connectionString: first.url }, 'create table kept as select 1 as one')
  await first.stop()
  await rm(join(directory, 'pg18.password'))
  const second = await startEmbedded({ directory, log, fsync: false })
  t.not(second.url, first.url)
  t.same(await ask({ connectionString: second.url }, 'select one from kept'), [{ one: 1 }])
  await second.stop()
  await writeFile(join(directory, 'pg18', 'pg_hba.conf'), 'local all all trust\n')
  const third = await startEmbedded({ directory, log, fsync: false })
  await t.rejects(
    ask({ host: socketOf(third.url), user: 'postgres', database: 'postgres', password: 'x' }, 'select 1'),
    wrongPassword
  )
  t.same(await ask({ connectionString: third.url }, 'select one from kept'), [{ one: 1 }])
  await third.stop()
})
