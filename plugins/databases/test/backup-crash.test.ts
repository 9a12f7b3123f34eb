import { stat } from 'node:fs/promises'
import { createTestKernel, type TestKernel, until } from 'busbar/sdk/testing'
import Docker from 'dockerode'
import { type Test, test } from 'tap'
import { requireDatabaseImages } from '../../../lab/database-images.js'
import { rotatingSample } from '../../../scripts/rotating-sample.mjs'
import { filesOf } from '../../backups/test/kit.js'
import { goOn, killedAt, longMs, projectOf, rowsOf } from './crash-lab.js'
import { createDatabase, runIn, untilRunning } from './lab.js'
import { drilled, filledPostgres, leftOf, untilDrilled, untilEnded } from './postgres-lab.js'

const docker = new Docker()

/** Of an `other`: nothing is written to it, so its server stands still. */
async function killedWhilePacked(t: Test): Promise<void> {
  const first = await createTestKernel()
  const lab = await projectOf(first)
  const made = await createDatabase(lab, { type: 'other', image: 'redis:7', container_port: 6379 })
  const cli = async (k: TestKernel, ...words: string[]) =>
    await runIn(k, made.id, ['redis-cli', '-h', '127.0.0.1', ...words])
  const sumOn = async (k: TestKernel) => await runIn(k, made.id, ['md5sum', '/data/large'])
  // Random: what is compressed to nothing is packed in no time.
  await runIn(first, made.id, ['sh', '-c', 'head -c 150000000 /dev/urandom > /data/large'])
  await cli(first, 'set', 'kept', 'yes')
  const sum = await sumOn(first)
  const { state } = first
  await first.stop()
  await killedAt(state, { path: made.path, post: `${made.path}/backups` }, /^a backup is made/, async () => {
    await until(
      async () => {
        const [file] = await filesOf({ state })
        return file !== undefined && (await stat(file)).size > 0
      },
      'its files to be packed',
      longMs
    )
  })
  const [cut] = await rowsOf(state, 'select status from backups.backup', [])
  t.match(cut, { status: 'running' }, 'it was in the middle')
  t.match(await docker.getContainer(made.slug).inspect(), { State: { Running: false } })

  const k = await goOn(t, state)
  const ann = await k.as.session('ann')
  t.match(await untilEnded(ann, made.path, 'backups'), {
    status: 'failed',
    error: 'the platform ended while the backup was under way'
  })
  await untilRunning(ann, made.path)
  await until(
    async () => (await cli(k, 'get', 'kept').catch(() => '')) === 'yes',
    'it to serve again',
    longMs
  )
  t.equal(await sumOn(k), sum)
  t.same(await filesOf(k), [], 'no part of a file')
  t.match(await leftOf(k, made), { containers: [made.slug], volumes: 1 })
  const volume = (await rowsOf<{ volume: string }>(state, 'select volume from databases.database', []))[0]
  t.same(
    (await docker.listContainers({ all: true, filters: { volume: [volume?.volume ?? ''] } })).map(
      ({ Names: names }) => names
    ),
    [[`/${made.slug}`]],
    'nothing else has its volume'
  )
  await ann.post(`${made.path}/backups`)
  t.match(await untilEnded(ann, made.path, 'backups', 1), { status: 'succeeded' }, 'the next one is made')
}

async function killedWhileProven(t: Test): Promise<void> {
  const first = await createTestKernel()
  const lab = await projectOf(first)
  const made = await filledPostgres(lab, '15')
  await lab.ann.post(`${made.path}/backups`)
  const { id, ...backup } = await untilEnded(lab.ann, made.path, 'backups')
  t.match(backup, { status: 'succeeded' }, backup.log)
  const { state } = first
  await first.stop()
  const serving = async () => {
    const { Id, State } = await docker.getContainer(made.slug).inspect()
    return { Id, startedAt: State.StartedAt, isRunning: State.Running }
  }
  const before = await serving()
  const check = docker.getContainer(`${made.slug}-check`)
  await killedAt(
    state,
    { path: made.path, post: `${made.path}/backups/${id}/check` },
    /with a container/,
    async () => {
      const isRead = async (): Promise<boolean> => {
        const top = check.top() as Promise<{ readonly Processes: ReadonlyArray<readonly string[]> }>
        const { Processes: processes } = await top.catch(() => ({ Processes: [] }))
        return processes.some(words => words.some(word => / COPY/.test(word)))
      }
      await until(isRead, 'the backup to be read into a server beside it', longMs)
    }
  )
  const [cut] = await rowsOf(state, 'select proof from backups.backup', [])
  t.match(cut, { proof: 'running' }, 'it was in the middle')
  t.match(await check.inspect(), { State: { Running: true } }, 'there is something to be left')

  const k = await goOn(t, state)
  const ann = await k.as.session('ann')
  t.match(await untilDrilled(ann, made.path, id), { status: 'proven', error: null })
  const nothingBeside = async (): Promise<void> => {
    t.match(await leftOf(k, made), { containers: [made.slug], volumes: 1 }, 'nothing is left beside it')
  }
  await nothingBeside()
  t.match(await drilled({ ann }, made, id), { status: 'proven' }, 'a later one passes')
  await nothingBeside()
  t.match((await ann.get(made.path)).body, { status: 'running' })
  t.same(await serving(), before, 'the one that serves was not touched')
}

const cases: ReadonlyArray<readonly [string, (t: Test) => Promise<void>]> = [
  ['a database whose platform is killed while its files are packed has them all', killedWhilePacked],
  ['a drill whose platform is killed leaves nothing, and is made again', killedWhileProven]
]
const chosen = rotatingSample(
  'a platform that is killed while a backup is made or proven',
  cases.map(([title]) => title),
  { always: [], others: 1 }
)

for (const [title, run] of cases.filter(([title]) => chosen.has(title)))
  test(title, async t => {
    if (await requireDatabaseImages(t)) await run(t)
  })
