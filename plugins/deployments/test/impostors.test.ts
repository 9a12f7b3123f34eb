import { until } from 'busbar/sdk/testing'
import type Docker from 'dockerode'
import { type Test, test } from 'tap'
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

/** Whether the engine has the container no more. */
const isGone = async (container: Docker.Container): Promise<boolean> =>
  await container.inspect().then(
    () => false,
    () => true
  )

/** A container that runs beside that of the application, in its network and with its labels. */
async function startImpostor(t: Test, application: LabApplication): Promise<Docker.Container> {
  const own = await containerOf(application)
  const impostor = await engine.createContainer({
    Image: 'node:20',
    Cmd: ['node', '-e', thief],
    Labels: own.Config.Labels,
    HostConfig: { NetworkMode: own.HostConfig.NetworkMode ?? '', AutoRemove: false },
    StopTimeout: 0
  })
  t.teardown(async () => await impostor.remove({ force: true }).catch(() => undefined))
  await impostor.start()
  return impostor
}

test('an application is not taken over by what has its labels', async t => {
  if (!(await requireEngine(t))) return
  const lab = await openLab()
  t.teardown(() => lab.close())
  const web = await lab.application('web', sample('mine'))
  /** The version that answers. */
  let serving = 'mine'
  t.equal((await web.deployed()).status, 'success')
  const { direct_url: address } = await web.read()
  const visit = async (): Promise<string> =>
    await (await fetch(address, { headers: { cookie: 'session=secret' } })).text()
  const servesAgain = async (): Promise<void> => {
    await until(async () => (await visit().catch(() => '')) === serving, 'it serves again')
  }
  const control = async (t: Test, verb: 'start' | 'stop' | 'restart'): Promise<void> => {
    t.ok((await (await lab.k.as.session()).post(`${web.path}/${verb}`)).status < 300, verb)
  }

  const impostor = await startImpostor(t, web)
  /** From a restart on, whether it runs or not. */
  const impostorRuns = async (): Promise<void> => await impostor.restart({ t: 0 })

  await t.test('by a restart', async t => {
    await impostorRuns()
    await control(t, 'restart')
    await servesAgain()
    t.match(await web.read(), { status: 'running', direct_url: address })
    t.equal(
      (await impostor.inspect()).State.Status,
      'running',
      'the impostor was not the one that was stopped'
    )
  })

  await t.test('by a stop and a start', async t => {
    await control(t, 'stop')
    t.equal((await containerOf(web)).State.Running, false)
    await impostorRuns()
    t.match(await web.read(), { status: 'stopped' })
    await control(t, 'start')
    await servesAgain()
  })

  await t.test('by the end of the impostor, or a restart of the platform', async t => {
    await impostorRuns()
    await impostor.kill()
    // What comes after it has been read after it.
    await engine.getContainer(web.slug).kill({ signal: 'SIGKILL' })
    await until(
      async () => (await web.read()).status !== 'running',
      'the end of its own container is noticed'
    )
    await impostorRuns()
    await lab.restart()
    await control(t, 'start')
    await servesAgain()
    t.match(await web.read(), { status: 'running' })
  })

  await t.test('by the next deploy, whose clean-up is for its own', async t => {
    await impostorRuns()
    const { Id: old } = await containerOf(web)
    await web.push(sample('newer'))
    t.equal((await web.deployed()).status, 'success')
    serving = 'newer'
    t.equal(await visit(), serving)
    const next = await containerOf(web)
    await until(async () => await isGone(engine.getContainer(old)), 'the old container to go', 60_000)
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
      t.equal(await visit(), serving, name)
    }
  })

  await t.test('and its removal removes nothing else', async t => {
    const doomed = await lab.application('doomed', sample('mine'))
    t.equal((await doomed.deployed()).status, 'success')
    const itsImpostor = await startImpostor(t, doomed)
    t.ok((await (await lab.k.as.session()).delete(doomed.path)).status < 300)
    await until(async () => await isGone(engine.getContainer(doomed.slug)), 'its container to go', 60_000)
    t.equal((await itsImpostor.inspect()).State.Status, 'running')
  })

  t.notMatch(
    (await impostor.logs({ stdout: true, stderr: true, follow: false })).toString(),
    'STOLEN',
    'no visitor came to it'
  )
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
  await until(async () => await isGone(old), 'the old container to go', 60_000)
})
