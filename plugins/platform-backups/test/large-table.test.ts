import { chmod, mkdtemp, readFile, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createDatabase, createTestKernel } from 'busbar/sdk/testing'
import pg from 'pg'
import { test } from 'tap'
import { beginBusbar, ended } from './cli.js'
import { archives, backUp, makeKey } from './kit.js'

/** 1 GiB is what `MEGABYTES=1000` asks for; that takes a minute. */
const megabytes = Number(process.env.MEGABYTES ?? 200)
const mostGrowth = 100 * 1024 * 1024

/** The most that a process had in memory, in bytes, as long as it lives. */
async function peakOf(pid: number): Promise<number> {
  const text = await readFile(`/proc/${pid}/status`, 'utf8').catch(() => '')
  return Number(/VmHWM:\s+(\d+) kB/.exec(text)?.[1] ?? 0) * 1024
}

test(
  'a large table is backed up and restored without being held in memory',
  { timeout: 300_000 },
  async t => {
    const k = await createTestKernel({})
    t.teardown(() => k.close())
    const admin = await k.as.session()
    const key = await makeKey(admin)
    // The first one loads what every one needs.
    t.match(await backUp(admin), { status: 'succeeded' })
    await k.query(`
    create table platform_backups.filler (id integer primary key, text text not null);
    alter table platform_backups.filler alter column text set storage external`)
    await k.query(
      `insert into platform_backups.filler select i, repeat(md5(i::text), 31) from generate_series(1, ${megabytes * 1000}) i`
    )
    let most = 0
    const before = process.memoryUsage.rss()
    const watch = setInterval(() => {
      most = Math.max(most, process.memoryUsage.rss())
    }, 50)
    const started = performance.now()
    const run = await backUp(admin).finally(() => {
      clearInterval(watch)
    })
    t.match(run, { status: 'succeeded' })
    t.comment(
      `${megabytes} MB in ${Math.round(performance.now() - started)} ms, ${Math.round((most - before) / 2 ** 20)} MiB more memory`
    )
    t.ok(most - before < mostGrowth, `${Math.round((most - before) / 2 ** 20)} MiB more`)
    const file = (await archives(k)).at(-1) ?? ''
    await k.stop()

    const directory = await mkdtemp(join(tmpdir(), 'busbar-large-'))
    await chmod(directory, 0o711)
    const database = await createDatabase()
    t.teardown(async () => {
      await database.drop()
      await rm(directory, { recursive: true, force: true })
    })
    const child = beginBusbar(['restore', file], {
      directory,
      databaseUrl: database.url,
      environment: { BUSBAR_RECOVERY_KEY: key }
    })
    let peak = 0
    const look = setInterval(() => {
      void peakOf(child.pid ?? 0).then(bytes => {
        peak = Math.max(peak, bytes)
      })
    }, 200)
    const said = await ended(child).finally(() => {
      clearInterval(look)
    })
    t.equal(said.code, 0, said.stderr)
    t.comment(`restored with ${Math.round(peak / 2 ** 20)} MiB at most`)
    t.ok(peak < 400 * 2 ** 20, `${Math.round(peak / 2 ** 20)} MiB`)
    const client = new pg.Client({ connectionString: database.url })
    await client.connect()
    const { rows } = await client.query(
      'select count(*)::int as count, min(md5(text)) as first from platform_backups.filler where text = repeat(md5(id::text), 31)'
    )
    await client.end()
    t.equal(rows[0]?.count, megabytes * 1000)
  }
)
