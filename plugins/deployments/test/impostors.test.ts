import { until } from 'busbar/sdk/testing'
import type Docker from 'dockerode'
import { test } from 'tap'
import { requireEngine } from '../../../lab/engine.js'
import { type DeployLab, engine, type LabApplication, openLab, sample } from './deploy-lab.js'

/** Answers every request, and keeps what visitors send. */
const thief =
  "require('node:http').createServer((request, response) => { console.log('STOLEN ' + request.headers.cookie); response.end('thief') }).listen(8080)"

const labelLine = (labels: Readonly<Record<string, string>>): string =>
  `LABEL ${Object.entries(labels)
    .map(([key, value]) => `${key}=${JSON.stringify(value)}`)
    .join(' ')}`

/** A member with a project, who deploys a Dockerfile of theirs. */
async function attack(
  lab: DeployLab,
  name: string,
  dockerfile: string
): Promise<{ status: string; error_message: string }> {
  const member = await lab.k.as.session('stranger')
  const { body: project } = await member.post('/api/projects', {
    name,
    slug: `lab-${Math.random().toString(36).slice(2, 8)}`
  })
  const { url } = await lab.git.createRepository(name, { Dockerfile: dockerfile })
  const { body: application } = await member.post(`/api/projects/${project.id}/applications`, {
    name,
    type: 'git',
    build_type: 'dockerfile',
    source_repo: url,
    branch: 'main',
    container_port: 8080
  })
  const path = `/api/projects/${project.id}/applications/${application.id}`
  const {
    body: { id }
  } = await member.post(`${path}/deploy`)
  let deployment: any
  await until(
    async () => {
      deployment = (await member.get(`${path}/deployments/${id}`)).body
      return deployment.status === 'failed' || deployment.status === 'success'
    },
    'the attack to end',
    90_000
  )
  await member.delete(`/api/projects/${project.id}`)
  return deployment
}

const containerOf = async ({ slug }: LabApplication): Promise<Docker.ContainerInspectInfo> =>
  await engine.getContainer(slug).inspect()

test('an application is not taken over by what has its labels', async t => {
  if (!(await requireEngine(t))) return
  const lab = await openLab()
  t.teardown(() => lab.close())
  const admin = await lab.k.as.session()
  const web = await lab.application('web', sample('mine'))
  t.equal((await web.deployed()).status, 'success')
  const { direct_url: address } = await web.read()
  const own = await containerOf(web)
  const { Labels: labels } = own.Config
  const network = own.HostConfig.NetworkMode ?? ''
  const visit = async (): Promise<string> =>
    await (await fetch(address, { headers: { cookie: 'session=secret' } })).text()

  const impostor = await engine.createContainer({
    Image: 'node:20',
    Cmd: ['node', '-e', thief],
    Labels: labels,
    HostConfig: { NetworkMode: network, AutoRemove: false },
    StopTimeout: 0
  })
  t.teardown(async () => await impostor.remove({ force: true }).catch(() => undefined))
  await impostor.start()

  await t.test('by a restart', async t => {
    t.ok((await admin.post(`${web.path}/restart`)).status < 300)
    await until(async () => (await visit().catch(() => '')) === 'mine', 'it serves again')
    t.match(await web.read(), { status: 'running', direct_url: address })
    t.equal(
      (await impostor.inspect()).State.Status,
      'running',
      'the impostor was not the one that was stopped'
    )
  })

  await t.test('by a stop and a start', async t => {
    t.ok((await admin.post(`${web.path}/stop`)).status < 300)
    t.equal((await containerOf(web)).State.Running, false)
    await impostor.restart({ t: 0 })
    t.match(await web.read(), { status: 'stopped' })
    t.ok((await admin.post(`${web.path}/start`)).status < 300)
    await until(async () => (await visit().catch(() => '')) === 'mine', 'it serves again')
  })

  await t.test('by the end of the impostor, or a restart of the platform', async t => {
    await impostor.kill()
    // What comes after it has been read after it.
    await engine.getContainer(own.Id).kill({ signal: 'SIGKILL' })
    await until(
      async () => (await web.read()).status !== 'running',
      'the end of its own container is noticed'
    )
    await impostor.start()
    await lab.restart()
    t.ok((await (await lab.k.as.session()).post(`${web.path}/start`)).status < 300)
    await until(async () => (await visit().catch(() => '')) === 'mine', 'it serves again')
    t.match(await web.read(), { status: 'running' })
    await impostor.kill()
  })

  await t.test('by the next deploy, whose clean-up is for its own', async t => {
    await web.push(sample('newer'))
    await impostor.start()
    t.equal((await web.deployed()).status, 'success')
    t.equal(await visit(), 'newer')
    const next = await containerOf(web)
    await until(
      async () =>
        await engine
          .getContainer(own.Id)
          .inspect()
          .then(
            () => false,
            () => true
          ),
      'the old container to go',
      60_000
    )
    t.equal((await impostor.inspect()).State.Status, 'running')
    t.match(next.Config.Labels, { 'application-id': web.id })
  })

  await t.test('by a build of another member, whether its step fails or runs on', async t => {
    const copied = (await containerOf(web)).Config.Labels
    for (const [name, run] of [
      ['failing', 'RUN exit 1'],
      ['endless', `RUN ${JSON.stringify(['node', '-e', thief])}`]
    ] as const) {
      const ended = await attack(lab, name, `FROM node:20\n${labelLine(copied)}\n${run}\n`)
      t.equal(ended.status, 'failed', name)
      t.match(await web.read(), { status: 'running', direct_url: address }, name)
      t.equal(await visit(), 'newer', name)
    }
  })

  t.notMatch(
    (await impostor.logs({ stdout: true, stderr: true, follow: false })).toString(),
    'STOLEN',
    'no visitor came to it'
  )

  await t.test('and its removal removes nothing else', async t => {
    t.ok((await (await lab.k.as.session()).delete(web.path)).status < 300)
    await until(
      async () =>
        await engine
          .getContainer(web.slug)
          .inspect()
          .then(
            () => false,
            () => true
          ),
      'its container to go',
      60_000
    )
    t.equal((await impostor.inspect()).State.Status, 'running')
  })
})

test('an application that an earlier release has deployed, which signed no container, runs on and is owned', async t => {
  if (!(await requireEngine(t))) return
  const lab = await openLab()
  t.teardown(() => lab.close())
  const web = await lab.application('web', sample('before'))
  t.equal((await web.deployed()).status, 'success')
  const { direct_url: address } = await web.read()
  await lab.k.stop()

  // Its container as that release would have created it.
  const { Id: id, Config: config, HostConfig: host } = await containerOf(web)
  const unsigned = ['busbar-signature', 'busbar-image-instance', 'busbar-system']
  const Labels = Object.fromEntries(Object.entries(config.Labels).filter(([key]) => !unsigned.includes(key)))
  await engine.getContainer(id).remove({ force: true })
  const old = await engine.createContainer({
    name: web.slug,
    Image: config.Image,
    Env: config.Env,
    Labels,
    StopTimeout: 30,
    HostConfig: { ...host, ContainerIDFile: '' },
    NetworkingConfig: { EndpointsConfig: { [host.NetworkMode ?? '']: {} } }
  })
  await old.start()
  await lab.restart()

  const visit = async (): Promise<string> => await (await fetch(address)).text().catch(() => '')
  await until(async () => (await visit().catch(() => '')) === 'before', 'it serves')
  // The container that it was switched to is gone; this one is found a moment later.
  await until(async () => (await web.read()).direct_url === address, 'its address is its own')
  t.equal((await web.read()).status, 'running')
  const admin = await lab.k.as.session()
  t.ok((await admin.post(`${web.path}/restart`)).status < 300)
  await until(async () => (await visit().catch(() => '')) === 'before', 'it serves again')
  t.equal((await containerOf(web)).Id, old.id)
  await web.push(sample('after'))
  t.equal((await web.deployed()).status, 'success')
  t.equal(await visit(), 'after')
  await until(
    async () =>
      await old.inspect().then(
        () => false,
        () => true
      ),
    'the old container to go',
    60_000
  )
})
