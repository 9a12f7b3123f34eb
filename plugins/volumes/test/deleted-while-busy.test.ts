import { until } from 'busbar/sdk/testing'
import { type Test, test } from 'tap'
import { requireEngine } from '../../../lab/engine.js'
import { type S3Server, s3Bucket, s3Keys, startS3Server } from '../../../lab/s3-server.js'
import { rotatingSample } from '../../../scripts/rotating-sample.mjs'
import { ended } from '../../backups/test/kit.js'
import { type DeployLab, engine, openLab } from '../../deployments/test/deploy-lab.js'
import { engineNameOf, everythingIn, hasVolume, sparesOf, volumeApplication } from './volume-lab.js'

const longMs = 120_000
const never = new Promise<undefined>(() => {})

/** An application in a project of its own whose volume is backed up to a bucket while it stands still. */
async function opened(lab: DeployLab, s3: S3Server) {
  const admin = await lab.k.as.session()
  const slug = `busy-${Math.random().toString(36).slice(2, 8)}`
  const { body: project } = await admin.post('/api/projects', { name: slug, slug })
  const web = await volumeApplication(lab, 'web', { projectId: project.id })
  const { id } = await web.addVolume('data', '/data')
  await web.deployed()
  await web.run('echo one > /data/file; head -c 60000000 /dev/urandom > /data/large')
  const destination = await admin.post(`/api/projects/${project.id}/backup-destinations`, {
    name: 'Store',
    provider: 'minio',
    endpoint: s3.host,
    bucket: s3Bucket,
    use_ssl: false,
    ...s3Keys
  })
  const path = `${web.path}/volumes/${id}`
  const config = await admin.post(`${path}/backup-configs`, {
    destination_id: destination.body.id,
    schedule: '0 3 1 1 *',
    quiesce: true
  })
  const post = async (url: string): Promise<void> => {
    const { status, body } = await admin.post(`${path}/${url}`)
    if (status !== 202) throw new Error(`${status} ${JSON.stringify(body)}`)
  }
  const name = engineNameOf(web.id, 'data')
  return {
    admin,
    id,
    name,
    path,
    web,
    projectPath: `/api/projects/${project.id}`,
    beginBackup: async () => await post(`backup-configs/${config.body.id as string}/run`),
    beginRestore: async (backupId: string) => await post(`backups/${backupId}/restore`),
    isRunning: async (): Promise<boolean> =>
      (await admin.get(web.path)).body.status === 'running' && (await web.container()).State.Running,
    /** Containers that are no application's, and read or fill it or what a restore makes. */
    async holders(): Promise<number> {
      const volume = [name, ...(await sparesOf(id))]
      const found = await engine.listContainers({ all: true, filters: { volume } })
      // What an application's own has of it is empty.
      return found.filter(({ Labels: labels }) => (labels['busbar-system'] ?? '') !== '').length
    }
  }
}
type Busy = Awaited<ReturnType<typeof opened>>

const whats = {
  'the volume': async ({ admin, path }: Busy) => await admin.delete(path),
  'the volume with its data': async ({ admin, path }: Busy) => await admin.delete(`${path}?delete_data=true`),
  'its application': async ({ admin, web }: Busy) => await admin.delete(web.path),
  'its project': async ({ admin, projectPath }: Busy) => await admin.delete(projectPath)
}
type What = keyof typeof whats
const isVolume = (what: What): boolean => what === 'the volume' || what === 'the volume with its data'

/** What is left when all is over, with the store still as it was when something was deleted. */
async function provesGone(
  t: Test,
  what: What,
  // What is kept of a volume: one that is being made is none.
  { lab, s3, busy, kept = 0 }: { lab: DeployLab; s3: S3Server; busy: Busy; kept?: number }
) {
  const { id, name, web, holders } = busy
  t.match(await whats[what](busy), { status: 200, body: { status: 'deleted' } })
  await lab.k.runRemovalsNow()
  const jobs = async (): Promise<number> =>
    (await lab.k.query("select from graphile_worker.jobs where task_identifier ~ '^(backups|volumes):'"))
      .length
  const rows = async (table: string): Promise<number> => (await lab.k.query(`select from ${table}`)).length
  await until(async () => (await rows('backups.backup')) === kept, 'its backups to go', longMs)
  await until(() => s3.objects.size === kept && s3.uploads().length === 0, 'their files to go', longMs)
  await until(
    async () => (await rows('volumes.backup_work')) === 0,
    'what was changed to be put back',
    longMs
  )
  const running = "backups.restore where status = 'running'"
  await until(async () => (await rows(running)) === 0, 'the restore to end', longMs)
  await until(async () => (await jobs()) === 0, 'its jobs to end', longMs)
  await until(async () => (await sparesOf(id)).length === 0, 'what was unpacked to go', longMs)
  await until(async () => (await holders()) === 0, 'nobody to hold it', longMs)
  if (isVolume(what)) {
    await until(busy.isRunning, 'the application to run again', longMs)
    t.equal((await web.deployed('reload')).status, 'success', 'and it may be deployed')
  }
  if (what === 'the volume') return
  await until(async () => !(await hasVolume(name)), 'its files to go', longMs)
}

async function whileBackedUp(t: Test, what: What): Promise<void> {
  const s3 = await startS3Server(t)
  const lab = await openLab()
  t.teardown(() => lab.close())
  const busy = await opened(lab, s3)
  const before = await everythingIn(busy.name)
  // A store that takes no more: the dump waits in its middle.
  s3.fault = ({ part }) => (part === 2 ? never : undefined)
  await busy.beginBackup()
  await until(() => s3.requests.some(({ part }) => part === 2), 'the upload to stall', longMs)
  t.equal(await busy.isRunning(), false)
  t.equal(await busy.holders(), 1)
  await provesGone(t, what, { lab, s3, busy })
  if (what === 'the volume') t.equal(await everythingIn(busy.name), before)
}

async function whileRestored(t: Test, what: What): Promise<void> {
  const s3 = await startS3Server(t)
  const lab = await openLab()
  t.teardown(() => lab.close())
  const busy = await opened(lab, s3)
  await busy.beginBackup()
  const backup = await ended(busy.admin, `${busy.path}/backups`)
  t.match(backup, { status: 'succeeded' })
  await until(busy.isRunning, 'the application to run again', longMs)
  await busy.web.run('rm /data/large; echo later > /data/later')
  const before = await everythingIn(busy.name)
  // It is read whole first; the second time it is unpacked.
  let reads = 0
  s3.fault = ({ method, key }) => (method === 'GET' && key !== '' && ++reads > 1 ? never : undefined)
  await busy.beginRestore(backup.id)
  await until(async () => reads > 1 && (await busy.holders()) === 1, 'it to be unpacked', longMs)
  t.equal((await sparesOf(busy.id)).length, 1)
  await provesGone(t, what, { lab, s3, busy, kept: isVolume(what) ? 1 : 0 })
  if (what === 'the volume') t.equal(await everythingIn(busy.name), before, 'no file was lost')
}

const title = (verb: string, what: string): string =>
  `nothing of it stays when ${what} is deleted while it is ${verb}`
const cases = (Object.keys(whats) as What[]).flatMap(what => [
  { title: title('backed up', what), run: async (t: Test) => await whileBackedUp(t, what) },
  { title: title('restored', what), run: async (t: Test) => await whileRestored(t, what) }
])
const chosen = rotatingSample(
  'volumes that are deleted while they are backed up or restored',
  cases.map(one => one.title),
  { always: [title('backed up', 'its project')], others: 1 }
)

for (const { title, run } of cases.filter(one => chosen.has(one.title)))
  test(title, async t => {
    if (await requireEngine(t)) await run(t)
  })
