import { execFile, spawn } from 'node:child_process'
import { once } from 'node:events'
import { chown, mkdtemp, readdir, readFile, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { until } from 'busbar/sdk/testing'
import pg from 'pg'
import type { Test } from 'tap'
import { skipWithout } from '../../../lab/requirements.js'

const programs = '/usr/lib/postgresql'

interface OldPostgres {
  readonly major: number
  /** Of a fresh, empty database. */
  createDatabase(name: string): Promise<string>
}

/** A server of an older major than the platform's own, which the machine has installed; undefined where there is none. */
export async function startOldPostgres(t: Test): Promise<OldPostgres | undefined> {
  const majors = (await readdir(programs).catch(() => []))
    .map(Number)
    .filter(major => major >= 15 && major < 18)
  const major = Math.max(...majors)
  if (majors.length === 0) {
    skipWithout(t, {
      what: 'an older PostgreSQL',
      reason: `there is no PostgreSQL 15 to 17 below ${programs} (Debian: apt-get install postgresql-15)`
    })
    return undefined
  }
  const bin = join(programs, String(major), 'bin')
  const directory = await mkdtemp(join(tmpdir(), 'busbar-old-pg-'))
  const ids = await accountIds()
  if (ids.uid !== undefined && ids.gid !== undefined) await chown(directory, ids.uid, ids.gid)
  const data = join(directory, 'data')
  await promisify(execFile)(
    join(bin, 'initdb'),
    ['-D', data, '-U', 'owner', '-A', 'trust', '--no-sync', '-E', 'UTF8'],
    {
      ...ids,
      cwd: directory
    }
  )
  const server = spawn(
    join(bin, 'postgres'),
    ['-D', data, '-c', 'listen_addresses=', '-c', `unix_socket_directories=${directory}`, '-c', 'fsync=off'],
    { ...ids, cwd: directory, stdio: 'ignore' }
  )
  t.teardown(async () => {
    server.kill('SIGQUIT')
    if (server.exitCode === null && server.signalCode === null) await once(server, 'exit')
    await rm(directory, { recursive: true, force: true })
  })
  const urlOf = (database: string, user = 'owner'): string =>
    `postgres:///${database}?host=${encodeURIComponent(directory)}&user=${user}`
  const ask = async (text: string): Promise<true> => {
    const client = new pg.Client({ connectionString: urlOf('postgres') })
    client.on('error', () => {})
    await client.connect()
    try {
      await client.query(text)
      return true
    } finally {
      await client.end()
    }
  }
  await until(async () => await ask('select 1').catch(() => undefined), 'the older PostgreSQL to answer')
  // As an operator has it: no superuser.
  await ask('create role busbar login')
  return {
    major,
    createDatabase: async name => {
      await ask(`create database ${name} owner busbar`)
      return urlOf(name, 'busbar')
    }
  }
}

async function accountIds(): Promise<{ uid?: number; gid?: number }> {
  if (process.getuid?.() !== 0) return {}
  const line = (await readFile('/etc/passwd', 'utf8'))
    .split('\n')
    .find(one => /^(postgres|nobody):/.test(one))
  const [, , uid = '65534', gid = '65534'] = line?.split(':') ?? []
  return { uid: Number(uid), gid: Number(gid) }
}
