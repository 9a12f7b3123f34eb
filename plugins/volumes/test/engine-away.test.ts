import { until } from 'busbar/sdk/testing'
import { test } from 'tap'
import { requireSecondEngine, startSecondEngine } from '../../../lab/second-engine.js'
import { openLab } from '../../deployments/test/deploy-lab.js'
import { volumeApplication } from './volume-lab.js'

/** Enough to be copied for some seconds. */
const start =
  '[ -e /data/large ] || dd if=/dev/urandom of=/data/large bs=1M count=300; mkdir -p /tmp/www; echo up > /tmp/www/index.html; exec httpd -f -p 8080 -h /tmp/www'

test('an application whose engine is away when a backup of its volume ends is started again', async t => {
  if (!(await requireSecondEngine(t))) return
  const engine = await startSecondEngine({ images: ['busybox:lab'] })
  t.teardown(() => engine.close())
  const lab = await openLab({ environment: engine.environment, docker: engine.docker })
  t.teardown(() => lab.close())
  const admin = await lab.k.as.session()
  const web = await volumeApplication(lab, 'web', { start })
  const { id: volumeId } = await web.addVolume('data', '/data')
  await web.deployed()
  const path = `${web.path}/volumes/${volumeId}`
  const destination = await admin.post(`/api/projects/${lab.projectId}/backup-destinations`, {
    name: 'here',
    provider: 'local'
  })
  const config = await admin.post(`${path}/backup-configs`, {
    destination_id: destination.body.id,
    schedule: '0 3 * * *',
    keep_latest: 3,
    quiesce: true
  })
  t.equal((await admin.post(`${path}/backup-configs/${config.body.id}/run`)).status, 202)
  const read = async (): Promise<any> => {
    lab.k.resetRateLimits()
    return (await admin.get(web.path)).body
  }
  await until(async () => (await read()).status === 'stopped', 'it to be stopped for the backup', 60_000)
  await engine.kill()
  const newest = async (): Promise<any> => {
    lab.k.resetRateLimits()
    return (await admin.get(`${path}/backups`)).body[0]
  }
  await until(async () => (await newest()).status === 'failed', 'the backup to fail', 180_000)
  t.not((await read()).status, 'running')
  await engine.start()
  await until(async () => (await read()).status === 'running', 'the application to run again', 240_000)
  const serves = async (): Promise<boolean> =>
    await engine.docker
      .getContainer((await read()).slug)
      .inspect()
      .then(({ State }) => State.Running)
  await until(serves, 'its container to run')
  await until(
    async () => (await admin.post(`${web.path}/restart`)).status === 200,
    'the backup to keep nobody any more',
    60_000
  )
  t.match(await web.deployed('reload'), { status: 'success' })
})
