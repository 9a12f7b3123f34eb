import { stat } from 'node:fs/promises'
import { type TestClient, until } from 'busbar/sdk/testing'
import { type Test, test } from 'tap'
import { requireEngine } from '../../../lab/engine.js'
import { rotatingSample } from '../../../scripts/rotating-sample.mjs'
import { filesOf } from '../../backups/test/kit.js'
import { rowsOf } from '../../databases/test/crash-lab.js'
import { killedAfter } from '../../deployments/test/crash-lab.js'
import { engine, openLab } from '../../deployments/test/deploy-lab.js'
import { sparesOf, volumeApplication } from './volume-lab.js'

const longMs = 240_000
const sumOfAll = 'cd /data; find . -type f -exec md5sum {} + | sort'

/** An application with so many random bytes in its volume, of which backups are made while it stands still. */
async function opened(t: Test, bytes: number) {
  const lab = await openLab()
  t.teardown(() => lab.close())
  const web = await volumeApplication(lab, 'web')
  const { id } = await web.addVolume('data', '/data')
  await web.deployed()
  await web.run(`echo one > /data/file; head -c ${bytes} /dev/urandom > /data/large`)
  const admin = await lab.k.as.session()
  const destination = await admin.post(`/api/projects/${lab.projectId}/backup-destinations`, {
    name: 'here',
    provider: 'local'
  })
  const path = `${web.path}/volumes/${id}`
  const config = await admin.post(`${path}/backup-configs`, {
    destination_id: destination.body.id,
    schedule: '0 3 1 1 *',
    quiesce: true
  })
  const begun = async (platform: TestClient, what: string): Promise<void> => {
    const { status, body } = await platform.post(`${path}/${what}`)
    if (status !== 202) throw new Error(`${status} ${JSON.stringify(body)}`)
  }
  return {
    lab,
    web,
    beginBackup: async (platform: TestClient) =>
      await begun(platform, `backup-configs/${config.body.id as string}/run`),
    beginRestore: async (platform: TestClient, backupId: string) =>
      await begun(platform, `backups/${backupId}/restore`),
    /** The newest, once so many are there and it is over. */
    async ended(what: 'backups' | 'restores', count = 1) {
      const client = await lab.k.as.session()
      return await until(
        async () => {
          const { body } = await client.get(`${path}/${what}`)
          return body.length >= count && body[0].finished_at !== null ? body[0] : undefined
        },
        `one of the ${what} to end`,
        longMs
      )
    },
    async servesAgain(): Promise<void> {
      const client = await lab.k.as.session()
      const isRunning = async (): Promise<boolean> =>
        (await client.get(web.path)).body.status === 'running' && (await web.container()).State.Running
      await until(isRunning, 'the application to run again', longMs)
      const { direct_url: address } = (await client.get(web.path)).body
      const answer = await until(
        async () =>
          await fetch(address).then(
            one => one.text(),
            () => undefined
          ),
        'it to answer'
      )
      t.equal(answer.trim(), 'up')
    },
    /** What there is of its files on the engine, and what holds them. */
    async holders() {
      const { Mounts: mounts } = await web.container()
      const name = mounts.find(({ Destination: at }) => at === '/data')?.Name ?? ''
      const users = await engine.listContainers({ all: true, filters: { volume: [name] } })
      return { spares: await sparesOf(id), users: users.length }
    }
  }
}

async function killedWhilePacked(t: Test): Promise<void> {
  const { lab, web, beginBackup, ended, servesAgain, holders } = await opened(t, 150_000_000)
  const sum = await web.run(sumOfAll)
  const { state } = lab.k
  await lab.k.stop()
  await killedAfter(lab, async platform => {
    await beginBackup(platform)
    const isPacked = async (): Promise<boolean> => {
      const [file] = await filesOf({ state })
      return file !== undefined && (await stat(file)).size > 0
    }
    await until(isPacked, 'its files to be packed', longMs)
  })
  const [cut] = await rowsOf(state, 'select status from backups.backup', [])
  t.match(cut, { status: 'running' }, 'it was in the middle')
  const [{ has_stopped: hasStopped } = { has_stopped: false }] = await rowsOf<{ has_stopped: boolean }>(
    state,
    'select has_stopped from volumes.backup_work',
    []
  )
  t.equal(hasStopped, true, 'the application stands still')

  await lab.restart()
  t.match(await ended('backups'), {
    status: 'failed',
    error: 'the platform ended while the backup was under way'
  })
  await servesAgain()
  t.equal(await web.run(sumOfAll), sum)
  t.same(await filesOf(lab.k), [], 'no part of a file')
  t.same(await holders(), { spares: [], users: 1 }, 'nothing else has its volume')
  await beginBackup(await lab.k.as.session())
  t.match(await ended('backups', 2), { status: 'succeeded' }, 'the next one is made')
  await servesAgain()
}

async function killedAtExchange(t: Test): Promise<void> {
  const { lab, web, beginBackup, beginRestore, ended, servesAgain, holders } = await opened(t, 5_000_000)
  const sum = await web.run(sumOfAll)
  await beginBackup(await lab.k.as.session())
  const { id, ...backup } = await ended('backups')
  t.match(backup, { status: 'succeeded' }, backup.error)
  await servesAgain()
  await web.run('rm /data/file; echo two > /data/later')
  const { state } = lab.k
  await lab.k.stop()
  const exchanging = async () =>
    await rowsOf(state, "select from volumes.backup_work where what = 'restore' and is_exchanging", [])
  await killedAfter(lab, async platform => {
    await beginRestore(platform, id)
    await until(async () => (await exchanging()).length > 0, 'the volumes to be exchanged', longMs)
  })
  t.equal((await exchanging()).length, 1, 'it was in the middle')

  await lab.restart()
  t.match(await ended('restores'), { status: 'succeeded', backup_id: id })
  await servesAgain()
  t.equal(await web.run(sumOfAll), sum, 'all of the backup, and nothing else')
  await until(async () => (await holders()).spares.length === 0, 'what was there before it to go', longMs)
  t.match(await holders(), { users: 1 }, 'nothing else has its volume')
}

const cases: ReadonlyArray<readonly [string, (t: Test) => Promise<void>]> = [
  ['an application serves again whose platform is killed while its volume is packed', killedWhilePacked],
  ['a volume is whole whose platform is killed while a restore exchanges it', killedAtExchange]
]
const chosen = rotatingSample(
  'a platform that is killed while a volume is backed up or restored',
  cases.map(([title]) => title),
  { always: [], others: 1 }
)

for (const [title, run] of cases.filter(([title]) => chosen.has(title)))
  test(title, async t => {
    if (await requireEngine(t)) await run(t)
  })
