import { buffer } from 'node:stream/consumers'
import { test } from 'tap'
import { startNewerEngine } from '../../../lab/newer-engine.js'
import { startLab } from './lab.js'

const { signal } = new AbortController()

test('files of a container, and copies and exchanges of volumes, are the same on a newer engine', async t => {
  const newer = await startNewerEngine(t, ['busybox:lab'])
  if (newer === undefined) return
  const lab = startLab(t, newer)
  const { runtime, projectId } = lab
  const said = async (id: string, script: string): Promise<string> => {
    const lines: string[] = []
    await runtime.exec(id, ['sh', '-c', script], { onLine: ({ text }) => lines.push(text), signal })
    return lines.join('\n')
  }
  const [name, other] = [`busbar-test-${projectId}`, `busbar-other-${projectId}`]
  for (const volume of [name, other]) await runtime.ensureVolume(volume, { projectId })
  const id = await runtime.create(
    lab.spec('newer', 'none', {
      volumes: [{ volume: name, path: '/data' }],
      files: [{ path: '/etc/app/key', content: Buffer.from('secret'), mode: 0o600 }]
    })
  )
  await runtime.start(id)
  t.equal(await said(id, 'cat /etc/app/key; echo; stat -c %a-%u /etc/app/key'), 'secret\n600-0')
  t.match(await said(id, 'echo x > /etc/app/key'), /Read-only file system/)
  await said(
    id,
    'mkdir /data/folder; echo 1 > /data/folder/file; ln -s ../../etc/hostname /data/out; chmod 4755 /data/folder/file'
  )

  const tar = await buffer(await runtime.readVolume(name, { signal }))
  t.match(tar.toString('latin1'), /volume\/folder\/file/)
  await runtime.fillVolume(other, await runtime.readVolume(name, { signal }), { signal })
  await said(id, 'echo 2 > /data/folder/file')
  await t.rejects(runtime.exchangeVolumes(name, other), { code: 'E_VOLUME_IN_USE' })
  await runtime.stop(id, 2)
  await runtime.exchangeVolumes(name, other)
  await runtime.exchangeVolumes(name, other, { isResumed: true })
  await runtime.start(id)
  t.equal(
    await said(id, 'cat /data/folder/file; readlink /data/out; stat -c %a /data/folder/file'),
    '1\n../../etc/hostname\n4755'
  )
  t.same(await runtime.volumeUsers(name), [id])
  t.same([...(await runtime.volumeNames({ projectId }))].sort(), [name, other].sort())
  await runtime.remove(id)
  for (const volume of [name, other]) await runtime.removeVolume(volume)
  t.same(await runtime.volumeNames({ projectId }), [])
  const { Volumes: left } = await newer.docker.listVolumes()
  t.same(left ?? [], [], 'nothing is left on the engine')
})
