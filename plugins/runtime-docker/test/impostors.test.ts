import { randomBytes, randomUUID } from 'node:crypto'
import { Readable } from 'node:stream'
import type { ContainerEvent, Owner } from 'busbar/api/containers'
import { settingsFrom, until } from 'busbar/sdk/testing'
import type Docker from 'dockerode'
import type { Test } from 'tap'
import { pack } from 'tar-stream'
import { createRedactor } from '../../../core/log/redactor.js'
import { keyringOf } from '../../../core/secrets/keyring.js'
import { secretsFor } from '../../../core/secrets/secrets.js'
import { DockerRuntime } from '../docker-runtime.js'
import { settings } from '../settings.js'
import { clock, engineTest, type Lab, log, startLab } from './lab.js'

const forever = new AbortController().signal
const foreign = { status: 409, code: 'E_CONTAINER_FOREIGN' }

function contextOf(dockerfile: string): Readable {
  const tar = pack()
  tar.entry({ name: 'Dockerfile' }, dockerfile)
  tar.finalize()
  return Readable.from(tar)
}

const labelLine = (labels: Readonly<Record<string, string>>): string =>
  `LABEL ${Object.entries(labels)
    .map(([key, value]) => `${key}=${JSON.stringify(value)}`)
    .join(' ')}`

/** An image that was made past the platform, as a person or a registry brings one. */
async function imageByHand(t: Test, { docker }: Lab, dockerfile: string): Promise<string> {
  const tag = `lab-hand-${randomUUID()}:1`
  const lines = await docker.buildImage(contextOf(dockerfile), { t: tag, forcerm: true })
  await new Promise(resolve => docker.modem.followProgress(lines, resolve))
  t.teardown(
    async () =>
      await docker
        .getImage(tag)
        .remove({ force: true })
        .catch(() => undefined)
  )
  return tag
}

interface Victim {
  readonly id: string
  readonly owner: Owner
  readonly labels: Record<string, string>
  readonly network: string
  readonly name: string
}

async function runVictim(lab: Lab): Promise<Victim> {
  const owner = { projectId: lab.projectId, applicationId: randomUUID(), deploymentId: randomUUID() }
  const network = await lab.runtime.ensureNetwork({
    id: lab.projectId,
    slug: `v${lab.projectId.slice(0, 8)}`
  })
  const spec = lab.spec('victim', network, { owner })
  const id = await lab.runtime.create(spec)
  await lab.runtime.start(id)
  return {
    id,
    owner,
    network,
    name: spec.name,
    labels: (await lab.docker.getContainer(id).inspect()).Config.Labels
  }
}

async function runByHand(t: Test, { docker }: Lab, options: Docker.ContainerCreateOptions): Promise<string> {
  const container = await docker.createContainer({
    Image: 'busybox:lab',
    Cmd: ['sleep', '600'],
    StopTimeout: 0,
    ...options
  })
  t.teardown(async () => await container.remove({ force: true }).catch(() => undefined))
  await container.start()
  return container.id
}

/** Runs a step of the engine's own builder, with any labels, until the test ends. */
async function runStep(t: Test, { docker }: Lab, labels: Readonly<Record<string, string>>): Promise<string> {
  const mark = randomUUID()
  const lines = await docker.buildImage(
    contextOf(`FROM busybox:lab\n${labelLine(labels)}\nRUN : ${mark}; exec sleep 600\n`),
    { forcerm: true }
  )
  const ended = new Promise(resolve => docker.modem.followProgress(lines, resolve))
  const find = async () =>
    (await docker.listContainers({ filters: { status: ['running'] } })).find(({ Command }) =>
      Command.includes(mark)
    )?.Id
  const id = await until(find, 'the step to run', 30_000)
  const {
    Config: { Image: parent }
  } = await docker.getContainer(id).inspect()
  t.teardown(async () => {
    await docker
      .getContainer(id)
      .kill()
      .catch(() => undefined)
    await ended
    await docker
      .getImage(parent)
      .remove({ force: true })
      .catch(() => undefined)
  })
  return id
}

engineTest(
  'a container that has every label of another one is not taken for it, however it was made',
  async t => {
    const lab = startLab(t)
    const { runtime } = lab
    const victim = await runVictim(lab)
    const base = await imageByHand(t, lab, `FROM busybox:lab\n${labelLine(victim.labels)}\n`)
    const impostors = {
      'started by hand': await runByHand(t, lab, {
        Labels: victim.labels,
        HostConfig: { NetworkMode: victim.network }
      }),
      'started by hand from an image with the labels': await runByHand(t, lab, { Image: base }),
      'a step of a build': await runStep(t, lab, victim.labels)
    }
    const seen: ContainerEvent[] = []
    const stop = new AbortController()
    const reading = (async () => {
      for await (const event of runtime.events(stop.signal)) seen.push(event)
    })()
    await until(() => seen[0], 'the events')

    for (const wanted of [
      {},
      victim.owner,
      { applicationId: victim.owner.applicationId },
      { deploymentId: victim.owner.deploymentId }
    ]) {
      t.same(
        (await runtime.list(wanted)).map(({ id }) => id),
        [victim.id]
      )
    }
    t.same(await runtime.buildSteps({}), [])
    const { signal } = new AbortController()
    for (const [how, id] of Object.entries(impostors)) {
      t.equal(await runtime.inspect(id), undefined, how)
      await t.rejects(runtime.stop(id, 0), foreign, how)
      await t.rejects(runtime.start(id), foreign, how)
      await t.rejects(runtime.remove(id), foreign, how)
      await t.rejects(runtime.removeBuildStep(id), foreign, how)
      await t.rejects(runtime.stats(id), foreign, how)
      await t.rejects(runtime.exec(id, ['true'], { onLine: () => {}, signal }), foreign, how)
      await t.rejects(runtime.logs(id, { signal }).next(), foreign, how)
      await t.rejects(runtime.rename(id, `other-${victim.name}`), foreign, how)
      await t.rejects(runtime.dial(id, 8080), foreign, how)
      await t.rejects(runtime.tail(id, 10), foreign, how)
      await lab.docker.getContainer(id).kill()
    }
    await runtime.stop(victim.id, 0)
    await until(
      () => seen.find(event => event.kind === 'container' && event.action === 'stop'),
      'the end of the victim'
    )
    stop.abort()
    await reading
    t.same(
      new Set(
        seen
          .filter(event => event.kind === 'container')
          .map(({ containerId, owner }) => `${containerId} ${owner.applicationId}`)
      ),
      new Set([`${victim.id} ${victim.owner.applicationId}`])
    )
  }
)

engineTest(
  "a container stays its owner's through a rename, and a copy of it by `docker commit` is nobody's",
  async t => {
    const lab = startLab(t)
    const victim = await runVictim(lab)
    await lab.runtime.rename(victim.id, `renamed-${victim.name}`)
    t.match(await lab.runtime.inspect(victim.id), { name: `renamed-${victim.name}`, owner: victim.owner })
    const { Id: image } = await lab.docker
      .getContainer(victim.id)
      .commit({ repo: `lab-commit-${lab.projectId}` })
    t.teardown(
      async () =>
        await lab.docker
          .getImage(image)
          .remove({ force: true })
          .catch(() => undefined)
    )
    const copy = await runByHand(t, lab, { Image: image })
    t.match((await lab.docker.getContainer(copy).inspect()).Config.Labels, victim.labels)
    t.equal(await lab.runtime.inspect(copy), undefined)
    t.same(
      (await lab.runtime.list({})).map(({ id }) => id),
      [victim.id]
    )
  }
)

engineTest(
  'an installation without the key that signed them takes no container for its own, and says which key to restore',
  async t => {
    const lab = startLab(t)
    const victim = await runVictim(lab)
    const lines: string[] = []
    const signatures = secretsFor(
      keyringOf(new Map([['test', randomBytes(32)]]), 'test'),
      createRedactor(),
      'runtime-docker'
    )
    const warned = {
      ...log,
      warn: (_: unknown, line: string) => {
        lines.push(line)
      }
    } as typeof log
    const other = new DockerRuntime({
      instanceId: lab.instanceId,
      signatures,
      clock,
      log: warned,
      settings: settingsFrom(settings, process.env)
    })
    t.same(await other.list({}), [])
    t.same(await other.list({}), [])
    await t.rejects(other.remove(victim.id), {
      ...foreign,
      message: /restore keys\.json, or put the earlier key into ENCRYPTION_KEYS/
    })
    t.same(await other.networkOwners(), [])
    t.equal(lines.length, 1, 'said once')
    t.match(lines[0], /restore keys\.json/)
  }
)

engineTest("what an earlier release has made, which signed nothing, stays its owner's", async t => {
  const lab = startLab(t)
  const { runtime, docker, instanceId, projectId } = lab
  const owner = { projectId, applicationId: randomUUID(), deploymentId: randomUUID() }
  const Labels = {
    'managed-by': 'busbar',
    'busbar-instance': instanceId,
    'project-id': projectId,
    'application-id': owner.applicationId,
    'deployment-id': owner.deploymentId,
    'database-id': ''
  }
  const slug = `o${projectId.slice(0, 8)}`
  await docker.createNetwork({
    Name: `busbar-${slug}`,
    Labels: { ...Labels, 'application-id': '', 'deployment-id': '' }
  })
  const volume = `lab-old-${projectId}`
  await docker.createVolume({ Name: volume, Labels })
  // As those releases asked for it.
  const id = await runByHand(t, lab, {
    name: `old-${projectId.slice(0, 8)}`,
    Labels,
    StopTimeout: 30,
    NetworkingConfig: { EndpointsConfig: { [`busbar-${slug}`]: {} } },
    HostConfig: {
      NetworkMode: `busbar-${slug}`,
      Init: true,
      CapDrop: ['ALL'],
      SecurityOpt: ['no-new-privileges:true'],
      ReadonlyRootfs: true,
      PidsLimit: 4096,
      LogConfig: { Type: 'json-file', Config: { 'max-size': '10m', 'max-file': '3' } },
      RestartPolicy: { Name: 'unless-stopped' },
      Mounts: []
    }
  })
  t.match(await runtime.list({ applicationId: owner.applicationId }), [{ id, owner, status: 'running' }])
  t.equal((await runtime.dial(id, 80)).port, 80)
  t.equal(await runtime.ensureNetwork({ id: projectId, slug }), `busbar-${slug}`)
  t.same(await runtime.networkOwners(), [projectId])
  t.same(
    (await runtime.volumes(owner)).map(({ name }) => name),
    [volume]
  )
  await runtime.ensureVolume(volume, owner)
  await runtime.rename(id, `new-${projectId.slice(0, 8)}`)
  await runtime.stop(id, 0)
  t.match(await runtime.inspect(id), { name: `new-${projectId.slice(0, 8)}`, status: 'exited', owner })
  await runtime.start(id)
  await runtime.remove(id)
  await runtime.removeVolume(volume)
  await runtime.removeNetworks(projectId)
  t.same(await runtime.networkOwners(), [])
})

engineTest('the labels of a network and of a volume mean nothing under another name', async t => {
  const lab = startLab(t)
  const { runtime, docker, projectId } = lab
  const [name, copy] = [`lab-own-${projectId}`, `lab-copy-${projectId}`]
  const network = await runtime.ensureNetwork({ id: projectId, slug: `c${projectId.slice(0, 8)}` })
  await runtime.ensureVolume(name, { projectId })
  const { Labels: networkLabels } = (await docker.getNetwork(network).inspect()) as Docker.NetworkInspectInfo
  const { Labels: volumeLabels } = await docker.getVolume(name).inspect()
  const twin = await docker.createNetwork({ Name: copy, Labels: networkLabels })
  t.teardown(async () => {
    await twin.remove().catch(() => undefined)
    await docker
      .getVolume(copy)
      .remove()
      .catch(() => undefined)
  })
  await docker.createVolume({ Name: copy, Labels: volumeLabels })

  t.same(
    (await runtime.volumes({ projectId })).map(volume => volume.name),
    [name]
  )
  await t.rejects(runtime.removeVolume(copy), { code: 'E_VOLUME_FOREIGN' })
  await t.rejects(runtime.ensureVolume(copy, { projectId }), { code: 'E_VOLUME_FOREIGN' })
  await runtime.removeNetworks(projectId)
  t.ok(await twin.inspect(), "the copy is nobody's to remove")
})

engineTest('a container of ours says nothing that its image says in the name of a platform', async t => {
  const lab = startLab(t)
  const image = await imageByHand(
    t,
    lab,
    `FROM busybox:lab\n${labelLine({
      'busbar-instance': 'x',
      'busbar-image-instance': 'x',
      'busbar-signature': 'x',
      'busbar-system': 'proxy',
      'busbar-later': 'x',
      'application-id': 'x',
      'database-id': 'x',
      vendor: 'theirs'
    })}\n`
  )
  const network = await lab.runtime.ensureNetwork({
    id: lab.projectId,
    slug: `l${lab.projectId.slice(0, 8)}`
  })
  const id = await lab.runtime.create(lab.spec('prebuilt', network, { image }))
  t.match((await lab.docker.getContainer(id).inspect()).Config.Labels, {
    'busbar-instance': lab.instanceId,
    'busbar-image-instance': '',
    'busbar-signature': '',
    'busbar-system': '',
    'busbar-later': '',
    'application-id': '',
    'database-id': '',
    'project-id': lab.projectId,
    vendor: 'theirs'
  })
})

const buildOptions = (lab: Lab, owner: Owner & { readonly projectId: string }) => ({
  tag: `lab-${lab.projectId}:1`,
  dockerfile: 'Dockerfile',
  buildArgs: {},
  owner,
  isLabelled: true as const,
  memoryBytes: 2 ** 28,
  cpus: 1,
  processes: 60,
  noCache: true
})

engineTest(
  'a build that gives a step the labels of somebody else is ended, and makes nothing of theirs',
  async t => {
    const lab = startLab(t)
    const { runtime } = lab
    const victim = await runVictim(lab)
    const attacker = { projectId: randomUUID(), applicationId: randomUUID() }
    const own = labelLine(await runtime.imageLabels(attacker))
    const others = await runtime.imageLabels(victim.owner)
    for (const labels of [
      victim.labels,
      others,
      { 'busbar-image-instance': '' },
      { 'busbar-system': 'proxy' },
      { 'application-id': victim.owner.applicationId ?? '' }
    ]) {
      const dockerfile = `FROM busybox:lab\n${own}\n${labelLine(labels)}\nRUN : ${lab.projectId}; sleep 120\n`
      const begunAt = Date.now()
      await t.rejects(
        runtime.build(contextOf(dockerfile), buildOptions(lab, attacker), {
          signal: forever,
          onLine: () => {}
        }),
        { status: 422, code: 'E_BUILD_LABELS' },
        JSON.stringify(labels)
      )
      t.ok(Date.now() - begunAt < 60_000, 'long before the step ends')
      await until(
        async () =>
          (await lab.docker.listContainers({ all: true })).some(({ Command }) =>
            Command.includes(`: ${lab.projectId}`)
          )
            ? undefined
            : true,
        'the step to go'
      )
      t.same(await runtime.images({ applicationId: victim.owner.applicationId }), [])
      t.equal(await runtime.buildCacheBytes({ applicationId: victim.owner.applicationId }), 0)
      t.same(
        (await runtime.list({})).map(({ id }) => id),
        [victim.id]
      )
    }
  }
)

engineTest(
  'a base image with labels of a platform lifts no limit of the steps on top of it, and owns none of them',
  async t => {
    const lab = startLab(t)
    const { runtime } = lab
    const owner = { projectId: lab.projectId, applicationId: randomUUID() }
    const victim = { projectId: randomUUID(), applicationId: randomUUID() }
    const base = await imageByHand(
      t,
      lab,
      `FROM busybox:lab\n${labelLine({ ...(await runtime.imageLabels(victim)), 'busbar-instance': lab.instanceId })}\n`
    )
    const lines: string[] = []
    const wait =
      'for i in $(seq 600); do cat /sys/fs/cgroup/pids/pids.max /sys/fs/cgroup/pids.max 2>&1 | grep "^[0-9]" && exit; sleep 0.05; done; exit 9'
    const image = await runtime.build(
      contextOf(`FROM ${base}\n${labelLine(await runtime.imageLabels(owner))}\nRUN ${wait}\n`),
      buildOptions(lab, owner),
      { signal: forever, onLine: line => lines.push(line) }
    )
    t.ok(lines.includes('60'), lines.join('\n'))
    t.same(image.builtFor, owner)
    t.same(
      (await runtime.images({ applicationId: owner.applicationId })).map(({ id }) => id),
      [image.id]
    )
  }
)

engineTest(
  'what is capped by a label cannot be taken for a container of a platform by another one, and an application of ours never is capped',
  async t => {
    const lab = startLab(t)
    const stop = new AbortController()
    const label = `lab-tool=${lab.projectId}`
    const refused: string[] = []
    await lab.runtime.capLabelled(
      label,
      { memoryBytes: 2 ** 27, cpus: 1, processes: 50 },
      { signal: stop.signal, onRefusal: reason => refused.push(reason) }
    )
    t.teardown(() => {
      stop.abort()
    })
    const image = await imageByHand(t, lab, `FROM busybox:lab\nLABEL ${label}\n`)
    const network = await lab.runtime.ensureNetwork({
      id: lab.projectId,
      slug: `g${lab.projectId.slice(0, 8)}`
    })
    const ours = await lab.runtime.create(lab.spec('ours', network, { image }))
    const theirs = await runByHand(t, lab, { Image: image, Labels: { 'busbar-instance': lab.instanceId } })
    const limitOf = async (id: string) => (await lab.docker.getContainer(id).inspect()).HostConfig.PidsLimit
    await until(async () => (await limitOf(theirs)) === 50, 'the cap')
    t.equal(await limitOf(ours), 4096)
    t.same(refused, [])
  }
)
