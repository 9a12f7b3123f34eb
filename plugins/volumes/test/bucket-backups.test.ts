import { until } from 'busbar/sdk/testing'
import { test } from 'tap'
import { requireEngine } from '../../../lab/engine.js'
import { startS3Server } from '../../../lab/s3-server.js'
import { ended, storedIn } from '../../backups/test/kit.js'
import { openLab } from '../../deployments/test/deploy-lab.js'
import { engineNameOf, everythingIn, inVolume, sparesOf, volumeApplication } from './volume-lab.js'

const files = `
  chown 1000:1001 . && chmod 2750 .
  echo plain-words > secret && chown 70:70 secret && chmod 600 secret
  echo s > setuid && chown 1:2 setuid && chmod 6755 setuid
  mkdir -p empty deep/er && chown 33:34 deep && chmod 1777 deep && chmod 700 empty
  head -c 3000000 /dev/urandom > deep/er/large && touch -d '2001-02-03 04:05:06' deep/er/large
  : > 'with blank and ümlaut'; ln -s ../../etc/hostname out; ln secret linked; chown -h 5:6 out
  head -c 100000 /dev/zero > zeros; chmod 000 zeros`

test('a volume in a bucket comes back as it was, into itself and into others', async t => {
  if (!(await requireEngine(t))) return
  const s3 = await startS3Server(t)
  const lab = await openLab()
  t.teardown(() => lab.close())
  const admin = await lab.k.as.session()
  const web = await volumeApplication(lab, 'web')
  const { id } = await web.addVolume('data', '/data')
  await web.deployed()
  const other = await volumeApplication(lab, 'other')
  const { id: otherId } = await other.addVolume('data', '/data')
  await other.deployed()
  const name = engineNameOf(web.id, 'data')
  t.equal(await inVolume(name, files), '')
  const before = await everythingIn(name)
  t.match(before, '\n./setuid 6755 1:2 1 regular file\n')
  t.match(before, '\n./deep/er/large 3000000 ')

  const path = `${web.path}/volumes/${id}`
  const run = await storedIn({ admin, project: lab.projectId }, s3, path)
  await run()
  const backup = await ended(admin, `${path}/backups`)
  t.match(backup, { status: 'succeeded', has_remote: true, encrypted: true }, JSON.stringify(backup))
  t.match((await admin.get(`${path}/backups`)).body, [{ id: backup.id }])
  t.match((await admin.get(`/api/projects/${lab.projectId}/backups`)).body, [
    { id: backup.id, kind: 'volume', resource_name: 'data', app_name: 'web' }
  ])
  const [stored] = [...s3.objects]
  t.equal(s3.objects.size, 1)
  t.same(s3.uploads(), [])
  t.match(stored?.[0], /-data-.*\.tar\.gz\.age$/)
  t.equal(stored?.[1].subarray(0, 21).toString(), 'age-encryption.org/v1')
  t.equal(backup.size_bytes, stored?.[1].length)

  t.equal((await admin.post(`${path}/backups/${backup.id}/check`)).status, 202)
  const proof = async () => (await admin.get(`${path}/backups`)).body[0].proof
  await until(async () => (await proof()).status !== 'running', 'it to be proven or not', 60_000)
  t.match(await proof(), { status: 'proven', rows: 5, error: null })
  t.equal(await everythingIn(name), before, 'a drill touches nothing')

  const restoredInto = async (target: string | undefined, list: string) => {
    const answer = await admin.post(
      `${path}/backups/${backup.id}/restore`,
      target === undefined ? {} : { target_volume_id: target }
    )
    t.equal(answer.status, 202, JSON.stringify(answer.body))
    t.match(await ended(admin, list), { status: 'succeeded', backup_id: backup.id })
  }
  await inVolume(name, 'rm -rf deep secret; echo later > later; chown -R 9:9 .; chmod 777 .')
  await restoredInto(undefined, `${path}/restores`)
  t.equal(await everythingIn(name), before, 'into itself')

  await inVolume(engineNameOf(other.id, 'data'), 'echo others > others')
  await restoredInto(otherId, `${other.path}/volumes/${otherId}/restores`)
  t.equal(await everythingIn(engineNameOf(other.id, 'data')), before, 'into one of another application')
  await inVolume(engineNameOf(other.id, 'data'), 'rm -rf deep')
  t.equal(await everythingIn(name), before, 'the two have nothing in common')

  const { id: newId } = await web.addVolume('new', '/new')
  await restoredInto(newId, `${web.path}/volumes/${newId}/restores`)
  t.equal(await everythingIn(engineNameOf(web.id, 'new')), before, 'into one that no deploy has made yet')
  await web.deployed()
  t.equal(await everythingIn(engineNameOf(web.id, 'new')), before, 'which the next one mounts as it is')

  for (const one of [id, otherId, newId])
    await until(async () => (await sparesOf(one)).length === 0, 'what was there before to go', 60_000)
  t.equal((await admin.delete(`${path}?delete_backups=true`)).status, 200)
  await lab.k.runRemovalsNow()
  await until(() => s3.objects.size === 0, 'the backup to go where that is asked for')
})
