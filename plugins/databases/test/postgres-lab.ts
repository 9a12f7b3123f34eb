import { setTimeout as sleep } from 'node:timers/promises'
import { containerRuntime } from 'busbar/api/containers'
import { type TestClient, type TestKernel, until } from 'busbar/sdk/testing'
import Docker from 'dockerode'
import pg from 'pg'
import type { Test } from 'tap'
import { containerOf, createDatabase, type Lab, type Made } from './lab.js'

const longMs = 420_000
const answerMs = 5000

/** A PostgreSQL with the table `kept` of some megabytes, and `acked`, which a test writes to. */
export async function filledPostgres(lab: Lab, version = '14'): Promise<Made> {
  const made = await createDatabase(lab, { type: 'postgres', version })
  const client = await signedIn(lab, made)
  await client.query(
    'create table kept as select n, repeat(md5(n::text), 4) as words from generate_series(1, 100000) as n; create table acked (n integer primary key)'
  )
  await client.end()
  return made
}

/** Signed in at the server that serves now, by the address of its container. */
async function signedIn({ k, ann }: Pick<Lab, 'k' | 'ann'>, made: Made): Promise<pg.Client> {
  const { body } = await ann.get(`${made.path}/credentials/reveal`)
  const { host, port } = await k.service(containerRuntime).dial(await containerOf(k, made.id), 5432)
  const client = new pg.Client({
    host,
    port,
    ...body.credentials,
    connectionTimeoutMillis: answerMs,
    query_timeout: answerMs
  })
  // Its server may be killed.
  client.on('error', () => {})
  await client.connect()
  return client
}

/** Adds rows one after another until the test ends, whatever happens to the server, and remembers those that were acknowledged. */
export function startWriter(t: Test, lab: Pick<Lab, 'k' | 'ann'>, made: Made) {
  const acked: number[] = []
  let isOver = false
  const run = async (): Promise<void> => {
    let client: pg.Client | undefined
    let next = 1
    for (; !isOver; next++)
      try {
        client ??= await signedIn(lab, made)
        await client.query('insert into acked values ($1)', [next])
        acked.push(next)
      } catch {
        await client?.end().catch(() => {})
        client = undefined
        await sleep(100)
      }
    await client?.end().catch(() => {})
  }
  const running = run()
  const end = async (): Promise<void> => {
    isOver = true
    await running
  }
  t.teardown(end)
  return {
    acked,
    /** Those that are acknowledged and not there; and what is there beside. */
    async lost(): Promise<readonly number[]> {
      await end()
      const client = await until(
        async () => await signedIn(lab, made).catch(() => undefined),
        'its server to answer'
      )
      const { rows } = await client.query<{ n: number }>('select n from acked')
      const kept = await client.query<{ count: string }>('select count(*) from kept')
      await client.end()
      if (kept.rows[0]?.count !== '100000') throw new Error(`${kept.rows[0]?.count} of 100000 rows are kept`)
      const there = new Set(rows.map(({ n }) => n))
      return acked.filter(n => !there.has(n))
    },
    async untilMore(): Promise<void> {
      const before = acked.length
      await until(() => acked.length > before + 5, 'rows to be acknowledged', longMs)
    }
  }
}

/** Lets every dump of it wait for a table, until it is released or the test ends: a dump that is under way for as long as a test wants. */
export async function heldDumps(t: Test, lab: Lab, made: Made) {
  const holder = await signedIn(lab, made)
  const release = async (): Promise<void> => {
    await holder.end().catch(() => {})
  }
  t.teardown(release)
  await holder.query('begin; lock table kept in access exclusive mode')
  return {
    async untilOneWaits(): Promise<void> {
      const looker = await signedIn(lab, made)
      const waits = async (): Promise<boolean> =>
        (
          await looker.query(
            "select from pg_stat_activity where application_name = 'pg_dump' and wait_event_type = 'Lock'"
          )
        ).rows.length > 0
      try {
        await until(waits, 'a dump to be under way', longMs)
      } finally {
        await looker.end().catch(() => {})
      }
    },
    release
  }
}

/** As a machine without memory does it, or a fault of the server: the engine starts it again. */
export async function killServer(k: TestKernel, made: Made, docker = new Docker()): Promise<void> {
  const { State } = await docker.getContainer(await containerOf(k, made.id)).inspect()
  process.kill(State.Pid, 'SIGKILL')
}

export async function untilUpgraded(ann: TestClient, { path }: Pick<Made, 'path'>) {
  return await until(
    async () => {
      const { body } = await ann.get(`${path}/upgrades`)
      return body[0]?.finished_at == null ? undefined : body[0]
    },
    'the upgrade to end',
    longMs
  )
}

/** Volumes that were given up are removed by jobs, which come after what gives them up. */
async function untilRemoved(k: TestKernel): Promise<void> {
  // Not what is kept for days.
  const jobs =
    "select from graphile_worker.jobs where task_identifier = 'databases:remove-volume' and run_at < now() + interval '1 day'"
  await until(async () => (await k.query(jobs)).length === 0, 'volumes that were given up to go', longMs)
}

/** What there is of it on the engine, once what was given up has gone: names of containers, and how many volumes. */
export async function leftOf(k: TestKernel, { id }: Pick<Made, 'id'>) {
  const runtime = k.service(containerRuntime)
  await untilRemoved(k)
  const containers = (await runtime.list({ databaseId: id })).map(({ name }) => name).sort()
  return { containers, volumes: (await runtime.volumeNames({ databaseId: id })).length }
}

export async function untilEnded(ann: TestClient, path: string, what: 'backups' | 'restores', before = 0) {
  return await until(
    async () => {
      const { body } = await ann.get(`${path}/${what}`)
      return body.length > before && body[0].finished_at !== null ? body[0] : undefined
    },
    `one of the ${what} to end`,
    longMs
  )
}

/** What a drill of a backup has found, once it is over. */
export async function untilDrilled(ann: TestClient, path: string, backupId: string) {
  return await until(
    async () => {
      const { status, body } = await ann.get(`${path}/backups`)
      // It was asked too often.
      if (status === 429) return undefined
      const all = body as Array<{ id: string; proof: { status: string } }>
      const proof = all.find(one => one.id === backupId)?.proof
      return proof?.status === 'proven' || proof?.status === 'failed' ? proof : undefined
    },
    'the drill to end',
    longMs
  )
}

/** What a drill of a backup has found. */
export async function drilled({ ann }: Pick<Lab, 'ann'>, { path }: Pick<Made, 'path'>, backupId: string) {
  const { status, body } = await ann.post(`${path}/backups/${backupId}/check`)
  if (status !== 202) throw new Error(`${status} ${JSON.stringify(body)}`)
  return await untilDrilled(ann, path, backupId)
}
