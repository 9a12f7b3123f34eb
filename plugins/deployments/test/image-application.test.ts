import { randomUUID } from 'node:crypto'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { until } from 'busbar/sdk/testing'
import { test } from 'tap'
import { requireEngine } from '../../../lab/engine.js'
import { containersOf, engine, openLab } from './deploy-lab.js'

test('an image application is deployed from its image, pinned, and cannot be rebuilt', async t => {
  if (!(await requireEngine(t))) return
  const lab = await openLab()
  t.teardown(() => lab.close())
  const admin = await lab.k.as.session()
  const image = await buildImage('served from an image')
  const answer = await admin.post(`/api/projects/${lab.projectId}/applications`, {
    name: 'img',
    type: 'image',
    build_type: 'image',
    source_image: image
  })
  t.equal(answer.status, 201)
  const path = `/api/projects/${lab.projectId}/applications/${answer.body.id}`
  const { body: begun } = await admin.post(`${path}/deploy`)
  let ended = begun
  await until(async () => {
    ended = (await admin.get(`${path}/deployments/${begun.id}`)).body
    return ended.status === 'success' || ended.status === 'failed'
  }, 'it has ended')
  t.match(ended, {
    status: 'success',
    error_message: null,
    image_tag: /^sha256:/,
    commit_sha: null,
    container_port: 8085,
    health_status: 'skipped'
  })
  t.match(ended.build_logs, /is used as it is/)
  t.equal(await (await fetch((await admin.get(path)).body.direct_url)).text(), 'served from an image')
  t.match(await admin.post(`${path}/rebuild`), {
    status: 400,
    body: { code: 'E_DEPLOYMENT_REBUILD_IMAGE' }
  })
  t.match(await admin.post(`${path}/reload`), { status: 202 })
  t.equal((await admin.delete(path)).status, 200)
  await until(async () => (await containersOf(answer.body.id)).length === 0, 'its containers are gone')
  t.ok(await engine.getImage(image).inspect(), 'an image that was not built for it stays')
  await engine.getImage(image).remove({ force: true })
})

test('an image that needs rights its caps lack says which, before it starts and after it has failed', async t => {
  if (!(await requireEngine(t))) return
  const lab = await openLab()
  t.teardown(() => lab.close())
  const admin = await lab.k.as.session()
  const tag = `test-${randomUUID().slice(0, 8)}`
  await engine.getImage('busybox:lab').tag({ repo: 'redis', tag })
  t.teardown(async () => await engine.getImage(`redis:${tag}`).remove())
  const { body } = await admin.post(`/api/projects/${lab.projectId}/applications`, {
    name: 'img',
    type: 'image',
    build_type: 'image',
    source_image: `redis:${tag}`,
    container_port: 8080,
    start_command: 'sh -c "touch /tmp/x && chown 99 /tmp/x && exec httpd -f -p 8080"'
  })
  const path = `/api/projects/${lab.projectId}/applications/${body.id}`
  const deployed = async () => {
    const { id } = (await admin.post(`${path}/deploy`)).body
    await until(
      async () => (await admin.get(`${path}/deployments/${id}`)).body.finished_at !== null,
      'it has ended'
    )
    return (await admin.get(`${path}/deployments/${id}`)).body
  }
  const warning = /needs the capabilities CHOWN, DAC_OVERRIDE, SETUID and SETGID\. container_caps is minimal/
  const failed = await deployed()
  t.match(failed, {
    status: 'failed',
    remedy: /it was refused the capability CHOWN, as container_caps is minimal: set it to standard/
  })
  t.match(failed.build_logs, warning)
  t.equal((await admin.put(`${path}/runtime`, { container_caps: 'standard' })).status, 200)
  const standard = await deployed()
  t.match(standard, { status: 'success', error_message: null })
  t.notMatch(standard.build_logs, warning)
})

/** An image as somebody else would have made it: it names its port by EXPOSE. */
async function buildImage(text: string): Promise<string> {
  const tag = `busbar-test-image:${randomUUID().slice(0, 8)}`
  const directory = await mkdtemp(join(tmpdir(), 'busbar-image-'))
  const server = `require('node:http').createServer((q, s) => s.end(${JSON.stringify(text)})).listen(8085, '0.0.0.0')`
  await writeFile(join(directory, 'server.js'), server)
  await writeFile(
    join(directory, 'Dockerfile'),
    'FROM node:20\nCOPY server.js /server.js\nEXPOSE 8085\nCMD ["node", "/server.js"]\n'
  )
  const stream = await engine.buildImage({ context: directory, src: ['Dockerfile', 'server.js'] }, { t: tag })
  await new Promise<void>((resolve, reject) =>
    engine.modem.followProgress(stream, error => (error === null ? resolve() : reject(error)))
  )
  await rm(directory, { recursive: true })
  return tag
}
