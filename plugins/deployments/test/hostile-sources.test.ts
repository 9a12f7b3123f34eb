import { once } from 'node:events'
import { readdir } from 'node:fs/promises'
import { type AddressInfo, createServer } from 'node:net'
import { join } from 'node:path'
import { type Test, test } from 'tap'
import { requireEngine } from '../../../lab/engine.js'
import { engine, openLab, sample } from './deploy-lab.js'

test('sources that cannot be deployed say why, and the version before them goes on', async t => {
  if (!(await requireEngine(t))) return
  const lab = await openLab()
  t.teardown(() => lab.close())
  const admin = await lab.k.as.session()
  t.equal((await admin.put('/api/plugins/builds/config', { checkout_mib: 20 })).status, 200)
  const web = await lab.application('web', sample('good'))
  t.equal((await web.deployed()).status, 'success')
  const address: string = (await web.read()).direct_url
  const mute = createServer(() => {})
  await new Promise<void>(resolve => mute.listen(0, '127.0.0.1', resolve))
  t.teardown(() => mute.close())
  const good = (await web.read()).source_repo

  const fails = async (t: Test, message: RegExp): Promise<void> => {
    const ended = await web.deployed()
    t.match(ended, { status: 'failed', step: 'prepare-image', error_message: message })
    t.match(ended.build_logs, ended.error_message.slice(0, 40))
    t.equal(await (await fetch(address)).text(), 'good')
    t.same(await readdir(join(lab.k.state.directory, 'data/builds/work')), [], 'no source is left')
    t.same(
      (await engine.listContainers({ all: true, filters: { label: [`application-id=${web.id}`] } })).length,
      1
    )
  }

  await t.test('a repository larger than it may be', async t => {
    await web.push({ 'video.mp4': Buffer.alloc(21 * 2 ** 20) })
    await fails(
      t,
      /larger than 20 MiB, the checkout_mib of the builds plugin: take large files out of it or raise the limit/
    )
    await web.push({ 'video.mp4': null })
  })

  await t.test('a Dockerfile that is a link to a file of the machine', async t => {
    await web.push({ Dockerfile: { symlink: '/etc/passwd' } })
    await fails(t, /^Dockerfile is a symbolic link that leads out of the source tree/)
    await web.push(sample('good'))
  })

  await t.test('an ignore file that Docker would refuse', async t => {
    await web.push({ '.dockerignore': 'node_modules\n[\n' })
    await fails(t, /^\.dockerignore cannot be used: the pattern \[ has a \[ without its \]/)
    await web.push({ '.dockerignore': null })
  })

  await t.test('a host that never answers is given up at a cancel', async t => {
    const { port } = mute.address() as AddressInfo
    t.equal((await admin.put(web.path, { source_repo: `http://127.0.0.1:${port}/app.git` })).status, 200)
    const asked = once(mute, 'connection')
    const { id } = await web.deploy()
    await asked
    t.ok((await admin.post(`${web.path}/deployments/${id}/cancel`)).status < 300)
    t.equal((await web.ended(id)).status, 'failed')
    t.same(await readdir(join(lab.k.state.directory, 'data/builds/work')), [])
    t.equal((await admin.put(web.path, { source_repo: good })).status, 200)
  })

  t.equal((await web.deployed()).status, 'success', 'the repository as it was is deployed as ever')
})
