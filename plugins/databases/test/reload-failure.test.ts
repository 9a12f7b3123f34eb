import { until } from 'busbar/sdk/testing'
import { test } from 'tap'
import { requireDatabaseImages } from '../../../lab/database-images.js'
import { containerOf, createDatabase, type Lab, type Made, runIn, startLab } from './lab.js'

const redis = { type: 'other', image: 'redis:7', container_port: 6379 }
const cli = async ({ k }: Lab, made: Made, ...words: string[]) =>
  await runIn(k, made.id, ['redis-cli', '-h', '127.0.0.1', ...words])

/** Asks for a reload that cannot be done, and says what has become of the database. */
async function reloaded({ ann }: Lab, { path }: Made) {
  const { status } = await ann.post(`${path}/reload`)
  if (status !== 202) throw new Error(`${status}`)
  return await until(
    async () => {
      const { body } = await ann.get(path)
      return body.status === 'creating' ? undefined : body
    },
    'the reload to end',
    120_000
  )
}

test('a reload whose image cannot be had leaves the container that serves', async t => {
  if (!(await requireDatabaseImages(t))) return
  const lab = await startLab(t)
  const { k, ann } = lab
  const made = await createDatabase(lab, redis)
  await cli(lab, made, 'set', 'kept', 'yes')
  const container = await containerOf(k, made.id)
  const [{ reference }] = (await k.query<{ reference: string }>(
    'select image_reference as reference from databases.database'
  )) as [{ reference: string }]
  const nowhere = `127.0.0.1:1/gone@sha256:${'0'.repeat(64)}`
  await k.query('update databases.database set image_reference = $1', [nowhere])
  t.match(await reloaded(lab, made), {
    status: 'running',
    status_detail: /^its container was not made anew, and the one of before serves on: /,
    container_missing: false
  })
  t.equal(await containerOf(k, made.id), container)
  t.equal(await cli(lab, made, 'get', 'kept'), 'yes')

  await t.test('and one that is stopped can be started with what it has', async t => {
    t.match(await ann.post(`${made.path}/stop`), { status: 200 })
    t.match(await reloaded(lab, made), { status: 'failed', status_detail: String, container_missing: false })
    t.match(await ann.post(`${made.path}/start`), { status: 200, body: { status: 'running' } })
    await until(async () => (await cli(lab, made, 'get', 'kept').catch(() => '')) === 'yes', 'its data')
  })

  await t.test('until it can be had again', async t => {
    await k.query('update databases.database set image_reference = $1', [reference])
    t.match(await reloaded(lab, made), { status: 'running', status_detail: null })
    t.not(await containerOf(k, made.id), container)
    t.equal(await cli(lab, made, 'get', 'kept'), 'yes')
  })
})

test('a database whose credentials cannot be decrypted is not left busy', async t => {
  if (!(await requireDatabaseImages(t))) return
  const lab = await startLab(t)
  const { k, ann } = lab
  const made = await createDatabase(lab, redis)
  const container = await containerOf(k, made.id)
  await k.query("update databases.database set credentials = 'b1.none.x.y'")

  await t.test('by a reload', async t => {
    t.match(await reloaded(lab, made), { status: 'running', status_detail: /cannot be decrypted/ })
    t.equal(await containerOf(k, made.id), container, 'the container that serves is not taken away')
    t.match(await ann.post(`${made.path}/stop`), { status: 200 })
    t.match(await reloaded(lab, made), { status: 'failed', status_detail: /cannot be decrypted/ })
    t.match(await ann.post(`${made.path}/start`), { status: 200, body: { status: 'running' } })
  })

  await t.test('by a backup', async t => {
    await ann.post(`${made.path}/backups`)
    const isIdle = async (): Promise<boolean> => (await ann.get(made.path)).body.status === 'running'
    await until(isIdle, 'it to be idle again', 120_000)
    t.match(await ann.post(`${made.path}/restart`), { status: 200 })
  })
})
