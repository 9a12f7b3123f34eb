import { until } from 'busbar/sdk/testing'
import { test } from 'tap'
import { requireEngine } from '../../../lab/engine.js'
import { engine, openLab } from '../../deployments/test/deploy-lab.js'
import { volumeApplication } from '../../volumes/test/volume-lab.js'
import { filesWith, holdersOf } from './holders.js'

test('a container sees its files, cannot change them, and has them as they were when it was made', async t => {
  if (!(await requireEngine(t))) return
  const lab = await openLab()
  t.teardown(() => lab.close())
  const admin = await lab.k.as.session()
  const web = await volumeApplication(lab, 'web')
  const other = await volumeApplication(lab, 'other')
  const secret = 'correct horse battery staple'
  const add = async (mount_path: string, content: string, more = {}) =>
    (await admin.post(`${web.path}/file-mounts`, { mount_path, content, ...more })).body
  await web.addVolume('data', '/data')
  const settings = await add('/etc/app/settings.json', '{"a":1}\n')
  await add('/run/secrets/key', secret, { is_secret: true, file_mode: '0600' })
  await add('/data/in/volume.txt', 'in a volume')
  await add('/usr/local/bin/tool', '#!/bin/sh\necho from a tool\n', { file_mode: '0755' })
  await web.deployed()
  await other.deployed()

  t.equal(await web.run('cat /etc/app/settings.json'), '{"a":1}')
  t.equal(await web.run('cat /run/secrets/key'), secret)
  t.equal(await web.run('cat /data/in/volume.txt'), 'in a volume')
  t.equal(await web.run('/usr/local/bin/tool'), 'from a tool')
  t.equal(await web.run('stat -c %a,%u,%g /run/secrets/key /etc/app/settings.json'), '600,0,0\n644,0,0')
  for (const change of ['echo x > ', 'rm -f ', 'chmod 777 ', 'mv -f /etc/app/settings.json '])
    t.match(await web.run(`${change}/run/secrets/key`), /read-only file system|resource busy/i, change)
  t.equal(await web.run('cat /run/secrets/key'), secret)
  t.match(await other.run('cat /run/secrets/key /etc/app/settings.json'), /No such file/)
  t.same(await filesWith(lab.k.state.directory, secret), [], 'the platform keeps none of it on its disk')
  t.notMatch(JSON.stringify(await web.container()), secret, 'nor does the engine tell of it')

  t.equal((await admin.put(`${web.path}/file-mounts/${settings.id}`, { content: '{"a":2}\n' })).status, 200)
  t.match((await admin.get(web.path)).body, { pending_change: 'config' })
  t.equal(await web.run('cat /etc/app/settings.json'), '{"a":1}', 'what runs is left alone')
  t.equal((await admin.post(`${web.path}/restart`)).status, 200)
  await until(async () => (await web.run('cat /etc/app/settings.json')) === '{"a":1}', 'a restart keeps it')
  const [before] = await holdersOf(web.id)
  await web.deployed('reload')
  t.equal(await web.run('cat /etc/app/settings.json'), '{"a":2}')
  t.match((await admin.get(web.path)).body, { pending_change: '' })
  await web.untilOne()
  await until(async () => (await holdersOf(web.id)).length === 1, 'the files of the old one are gone')
  t.not((await holdersOf(web.id))[0]?.Id, before?.Id)

  t.equal((await admin.delete(`${web.path}/file-mounts/${settings.id}`)).status, 200)
  await web.deployed('reload')
  t.match(await web.run('cat /etc/app/settings.json'), /No such file/)

  const folder =
    (await engine.getContainer((await holdersOf(web.id))[0]?.Id ?? '').inspect()).Mounts[0]?.Source ?? ''
  t.same(
    (await filesWith(folder, secret)).length,
    1,
    'only where it is mounted from, the engine has it in clear'
  )
  t.equal((await admin.delete(web.path)).status, 200)
  await lab.k.runRemovalsNow()
  await until(async () => (await holdersOf(web.id)).length === 0, 'all go with the application', 60_000)
  t.same(await filesWith(folder, secret).catch(() => []), [])
})

test('what a failed deploy quotes of its output shows no secret of a file', async t => {
  if (!(await requireEngine(t))) return
  const lab = await openLab()
  t.teardown(() => lab.close())
  const admin = await lab.k.as.session()
  const secret = 'tr0ub4dor-and-three'
  const web = await volumeApplication(lab, 'web', { start: 'cat /app/key; exit 3' })
  const { status } = await admin.post(`${web.path}/file-mounts`, {
    mount_path: '/app/key',
    content: `first line of it\n${secret}\n`,
    is_secret: true
  })
  t.equal(status, 201)
  await t.rejects(web.deployed(), /REDACTED/)
  const { body } = await admin.get(`${web.path}/deployments`)
  t.match(body, [{ status: 'failed' }])
  t.notMatch(JSON.stringify(body), secret)
  await until(async () => (await holdersOf(web.id)).length === 0, 'its files are gone with its container')
})
