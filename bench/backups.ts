import { execFile, spawn } from 'node:child_process'
import { once } from 'node:events'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { promisify } from 'node:util'
import { type Benchmark, mebibytes, millis, oursAtMost, type Row, ratioAtMost } from './benchmark.js'
import { expect } from './rig/expect.js'
import { removeFolder, temporaryFolder } from './rig/leftovers.js'
import { openPlatform, type Platform } from './rig/platform.js'
import { memoryOf } from './rig/process-usage.js'
import { median, medianRatio } from './statistics.js'

/** About so much is a dump of them, and so often it is done. */
const megabytes = Number(process.env.BENCH_BACKUP_MEGABYTES ?? 300)
const rounds = Number(process.env.BENCH_BACKUP_ROUNDS ?? 3)
const rowsOfMegabyte = 6_500
const pollMs = 200
const sampleMs = 100
const mostSeconds = 1_200
const execute = promisify(execFile)

interface Server {
  readonly id: string
  readonly container: string
  readonly user: string
  readonly database: string
  readonly environment: NodeJS.ProcessEnv
  /** Of the API. */
  readonly path: string
}

/** Backups and restores against what one does by hand, and the memory that they take. */
export const backups: Benchmark = {
  name: 'backups',
  title: `Backup and restore of a PostgreSQL database of ${megabytes} MB; the reference is pg_dump | gzip and gunzip | psql by hand`,
  async run() {
    const directory = await temporaryFolder()
    const platform = await openPlatform({ admins: 1 })
    try {
      const server = await createServer(platform)
      try {
        const fixedMs = await fixedMsOf(platform, server)
        await fill(server)
        return await measure(platform, server, { file: join(directory, 'by-hand.sql.gz'), fixedMs })
      } finally {
        await platform.admin.delete(`${server.path}?delete_backups=true`)
        await untilGone(platform, server.path)
      }
    } finally {
      await platform.close()
      await removeFolder(directory)
    }
  }
}

async function createServer({ admin, projectId }: Platform): Promise<Server> {
  const all = `/api/projects/${projectId}/databases`
  const made = expect(await admin.post(all, { name: 'bench', type: 'postgres', version: '15' }), 202) as {
    readonly id: string
  }
  const path = `${all}/${made.id}`
  const { slug } = await polled(async () => {
    const { body } = await admin.get(path)
    if (body.status === 'failed') throw new Error(`the database failed: ${JSON.stringify(body)}`)
    return body.status === 'running' ? (body as { slug: string }) : undefined
  })
  const { credentials } = expect(await admin.get(`${path}/credentials/reveal`), 200) as {
    readonly credentials: { readonly user: string; readonly password: string; readonly database: string }
  }
  return {
    id: made.id,
    container: slug,
    user: credentials.user,
    database: credentials.database,
    environment: { ...process.env, PGPASSWORD: credentials.password },
    path
  }
}

async function untilGone({ admin }: Platform, path: string): Promise<void> {
  await polled(async () => ((await admin.get(path)).status === 404 ? true : undefined))
}

async function polled<T>(probe: () => Promise<T | undefined>): Promise<T> {
  for (const since = performance.now(); performance.now() - since < mostSeconds * 1000; ) {
    const found = await probe()
    if (found !== undefined) return found
    await sleep(pollMs)
  }
  throw new Error(`it took longer than ${mostSeconds} s`)
}

/** Fixed text; what differs is given as arguments. */
async function shell(
  text: string,
  { container, user, database, environment }: Server,
  file = ''
): Promise<void> {
  const child = spawn('bash', ['-o', 'pipefail', '-c', text, 'bench', container, user, database, file], {
    env: environment,
    stdio: ['ignore', 'ignore', 'inherit']
  })
  const [code] = await once(child, 'exit')
  if (code !== 0) throw new Error(`it ended with ${String(code)}: ${text}`)
}

const inside = 'docker exec -i -e PGPASSWORD "$1"'
const psql = `${inside} psql -q -v ON_ERROR_STOP=1 -h 127.0.0.1 -U "$2"`

async function fill(server: Server): Promise<void> {
  const statement = `create table bench as select i as id, md5(i::text) as a, md5((i * 7)::text) as b,
    repeat(chr(97 + (i % 26)), 30) as c, now() + i * interval '1 second' as at from generate_series(1, ${rowsOfMegabyte * megabytes}) i`
  await shell(`${psql} -d "$3" -c "${statement.replace(/\s+/g, ' ')}"`, server)
}

async function untilOneVolume({ id }: Server): Promise<void> {
  await polled(async () => {
    const { stdout } = await execute('docker', [
      'volume',
      'ls',
      '--quiet',
      '--filter',
      `label=database-id=${id}`
    ])
    return /^\S+$/.test(stdout.trim()) ? true : undefined
  })
}

/** Of a restore of next to nothing: a server that is made anew for it, proven and started, which nobody does by hand. */
async function fixedMsOf(platform: Platform, server: Server): Promise<number> {
  const times: number[] = []
  for (let round = 0; round < rounds; round++) {
    const { id } = await run(platform, `${server.path}/backups`, `${server.path}/backups`, {})
    times.push(
      (await run(platform, `${server.path}/restore`, `${server.path}/restores`, { backup_id: id })).ms
    )
    await untilOneVolume(server)
  }
  return median(times)
}

async function measure(
  platform: Platform,
  server: Server,
  { file, fixedMs }: { readonly file: string; readonly fixedMs: number }
): Promise<Row[]> {
  const { pid } = platform.process
  const idle = memoryOf(pid).residentMib
  const times = {
    backup: [] as number[],
    dump: [] as number[],
    restore: [] as number[],
    removal: [] as number[],
    psql: [] as number[]
  }
  let most = 0
  const watching = setInterval(() => {
    most = Math.max(most, memoryOf(pid).residentMib)
  }, sampleMs)
  try {
    for (let round = 0; round < rounds; round++) {
      times.dump.push(
        await timed(
          async () =>
            await shell(`${inside} pg_dump -h 127.0.0.1 -U "$2" -d "$3" | gzip > "$4"`, server, file)
        )
      )
      const backup = await run(platform, `${server.path}/backups`, `${server.path}/backups`, {})
      times.backup.push(backup.ms)
      await shell(`${psql} -d "$3" -c 'drop database if exists by_hand' -c 'create database by_hand'`, server)
      times.psql.push(
        await timed(async () => await shell(`gunzip -c "$4" | ${psql} -d by_hand`, server, file))
      )
      await shell(`${psql} -d "$3" -c 'drop database by_hand'`, server)
      const restore = await run(platform, `${server.path}/restore`, `${server.path}/restores`, {
        backup_id: backup.id
      })
      times.restore.push(restore.ms)
      // What is measured next is not to have this beside it.
      times.removal.push(await timed(async () => await untilOneVolume(server)))
    }
  } finally {
    clearInterval(watching)
  }
  const transfers = times.restore.map(ms => ms - fixedMs)
  return [
    {
      measure: 'backup: at least 0.9 of the throughput by hand',
      ours: millis(median(times.backup)),
      reference: millis(median(times.dump)),
      ratio: medianRatio(times.backup, times.dump),
      goal: ratioAtMost(1 / 0.9)
    },
    {
      measure: 'restore beyond that of an empty dump: at least 0.9 of the throughput by hand',
      ours: millis(median(transfers)),
      reference: millis(median(times.psql)),
      ratio: medianRatio(transfers, times.psql),
      goal: ratioAtMost(1 / 0.9)
    },
    {
      measure: 'restore of an empty dump: a server made anew, proven and started',
      ours: millis(fixedMs)
    },
    {
      measure: 'restore in all; by hand into the server that runs',
      ours: millis(median(times.restore)),
      reference: millis(median(times.psql)),
      ratio: medianRatio(times.restore, times.psql)
    },
    {
      measure: 'behind a restore: until the volume from before it has gone',
      ours: millis(median(times.removal))
    },
    {
      measure: 'memory of the platform above idle, at most',
      ours: mebibytes(most - idle),
      goal: oursAtMost(100)
    }
  ]
}

async function timed(work: () => Promise<void>): Promise<number> {
  const startedAt = performance.now()
  await work()
  return performance.now() - startedAt
}

/** By the times that the platform tells of it. */
async function run(
  { admin }: Platform,
  start: string,
  list: string,
  body: object
): Promise<{ readonly id: string; readonly ms: number }> {
  expect(await admin.post(start, body), 202)
  return await polled(async () => {
    const [newest] = (await admin.get(list)).body as Array<Record<string, string>>
    if (newest === undefined || newest.status === 'running') return undefined
    if (newest.status === 'failed') throw new Error(newest.error)
    const ms = Date.parse(newest.finished_at ?? '') - Date.parse(newest.started_at ?? '')
    return { id: newest.id ?? '', ms }
  })
}
