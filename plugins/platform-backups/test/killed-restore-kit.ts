import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { createDatabase, createTestKernel, until } from 'busbar/sdk/testing'
import type pg from 'pg'
import type { Test } from 'tap'
import { beginBusbar, beginPlatform, busbar, ended } from './cli.js'
import { fill, folder, withClient } from './faults-kit.js'
import { archives, backUp, makeKey } from './kit.js'

const fillerMegabytes = 20
export const fillerRows = fillerMegabytes * 1000

/** An archive of an installation with the project Shop and a table that takes a while to restore. */
export async function archiveOfShop(t: Test) {
  const k = await createTestKernel({})
  t.teardown(() => k.close())
  await k.query(fill(fillerMegabytes))
  const admin = await k.as.session()
  await admin.post('/api/projects', { name: 'Shop', slug: 'shop' })
  const key = await makeKey(admin)
  t.match(await backUp(admin), { status: 'succeeded' })
  const [file = ''] = await archives(k)
  await k.stop()
  return { file, environment: { BUSBAR_RECOVERY_KEY: key } }
}

/** Something that has happened in a restore. It is asked again and again. */
export type HasCome = (directory: string, client: pg.Client) => Promise<boolean>

/** Kills a restore at a moment, sees that no platform starts from half of it, and begins it again. */
export async function restoreKilledAt(
  t: Test,
  { file, environment }: Awaited<ReturnType<typeof archiveOfShop>>,
  moment: string,
  hasCome: HasCome
) {
  const directory = await folder(t)
  const database = await createDatabase()
  t.teardown(() => database.drop())
  const options = { directory, databaseUrl: database.url, environment }
  await withClient(database.url, async client => {
    const child = beginBusbar(['restore', file], options)
    const over = ended(child)
    try {
      await Promise.race([until(async () => await hasCome(directory, client), moment, 60_000), over])
    } finally {
      child.kill('SIGKILL')
      await over
    }
  })
  const isHalf = await readFile(join(directory, 'restore/state.json')).then(
    () => true,
    () => false
  )
  if (isHalf)
    t.match(
      await ended(beginPlatform(options)),
      { code: 1, stderr: /has not been finished/ },
      `${moment}: the platform does not start`
    )
  // The server ends the connection of a killed process when it notices.
  await withClient(database.url, async client => {
    await until(async () => {
      const { rows } = await client.query(
        `select from pg_stat_activity where datname = current_database() and application_name = 'busbar bulk'`
      )
      return rows.length === 0
    }, 'the server to notice')
  })
  const again = await busbar(['restore', file, '--replace', '--without-snapshot'], options)
  t.equal(again.code, 0, `${moment}: ${again.stderr}`)
  return { directory, database, isHalf }
}
