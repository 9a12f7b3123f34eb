import { randomUUID } from 'node:crypto'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Readable } from 'node:stream'
import { settingsFrom, until } from 'busbar/sdk/testing'
import { type Test, test } from 'tap'
import { pack } from 'tar-fs'
import { type ListedImage, unneededSteps } from '../build-steps.js'
import { commandEnvironment, parseDockerHost } from '../engine-address.js'
import { settings } from '../settings.js'
import { engineTest, type Lab, startLab } from './lab.js'

const image = (
  id: string,
  parentId: string,
  sizeBytes: number,
  changes: Partial<ListedImage> = {}
): ListedImage => ({
  id,
  parentId,
  sizeBytes,
  createdAt: new Date(0),
  isUsed: false,
  isOwned: true,
  ...changes
})

test('what a build has left counts only what removing it would give back', t => {
  const base = image('base', '', 100, { isUsed: true, isOwned: false })
  t.same(unneededSteps([base]), { ids: [], bytes: 0 })
  t.same(
    unneededSteps([base, image('a', 'base', 130), image('b', 'a', 150, { isUsed: true })]),
    { ids: [], bytes: 0 },
    'steps of an image that is kept are part of it'
  )
  t.same(
    unneededSteps([base, image('a', 'base', 130), image('b', 'a', 150)]),
    { ids: ['b', 'a'], bytes: 50 },
    'what continues another comes first'
  )
  t.same(
    unneededSteps([
      base,
      image('a', 'base', 130),
      image('b', 'a', 150),
      image('c', 'a', 135, { isUsed: true })
    ]),
    { ids: ['b'], bytes: 20 },
    'a fork of it is kept'
  )
  t.same(
    unneededSteps([base, image('a', 'base', 130), image('b', 'a', 150, { isOwned: false })]),
    { ids: [], bytes: 0 },
    'somebody else has built on it'
  )
  t.same(
    unneededSteps([image('a', 'gone', 130)]),
    { ids: ['a'], bytes: 0 },
    'of what is not known nothing is claimed'
  )
  t.same(unneededSteps([image('a', '', 130)]), { ids: ['a'], bytes: 130 })
  t.end()
})

test('what triggers have made, which has no labels, goes with the last step that continues it', t => {
  const unlabelled = { isOwned: false }
  const base = image('base', 'from', 100, { isUsed: true, isOwned: false })
  const made = [image('t1', 'base', 110, unlabelled), image('t2', 't1', 120, unlabelled)]
  const [a, b] = [image('a', 't2', 130), image('b', 'a', 150)]
  t.same(unneededSteps([base, ...made, a, b]), { ids: ['b', 'a', 't2', 't1'], bytes: 50 })
  t.same(unneededSteps([base, ...made, a, b, image('c', 't2', 130)]).ids.slice(-2), ['t2', 't1'])
  t.same(
    unneededSteps([base, ...made, a, b, image('x', 't1', 130, unlabelled)]),
    { ids: ['b', 'a', 't2'], bytes: 40 },
    'not what somebody else continues'
  )
  t.same(unneededSteps([base, ...made, a, { ...b, isUsed: true }]).ids, [], 'nor what an image needs')
  t.same(
    unneededSteps([image('pulled', '', 100, unlabelled), image('a', 'pulled', 130)]).ids,
    ['a'],
    'nor what came from a registry'
  )
  t.end()
})

test('command-line tools are sent to the engine that the platform uses', t => {
  const address = (value: string, variables: Record<string, string> = {}) =>
    commandEnvironment(parseDockerHost(value, settingsFrom(settings, variables)))
  t.same(address('unix:///run/x.sock'), { DOCKER_HOST: 'unix:///run/x.sock' })
  t.same(address('tcp://engine.lan'), { DOCKER_HOST: 'tcp://engine.lan:2375' })
  t.same(address('tcp://[::1]:99', { DOCKER_TLS_VERIFY: '1', DOCKER_CERT_PATH: '/certs' }), {
    DOCKER_HOST: 'tcp://[::1]:99',
    DOCKER_TLS_VERIFY: '1',
    DOCKER_CERT_PATH: '/certs'
  })
  t.end()
})

async function build(
  t: Test,
  lab: Lab,
  {
    dockerfile,
    tag,
    applicationId
  }: { readonly dockerfile: string; readonly tag: string; readonly applicationId: string }
) {
  const directory = await mkdtemp(join(tmpdir(), 'busbar-steps-'))
  t.teardown(async () => await rm(directory, { recursive: true, force: true }))
  await writeFile(join(directory, 'Dockerfile'), dockerfile)
  const owner = { projectId: lab.projectId, applicationId }
  const labels = Object.entries(await lab.runtime.imageLabels(owner))
    .map(([key, value]) => `${key}=${value}`)
    .join(' ')
  await writeFile(join(directory, 'Dockerfile'), dockerfile.replaceAll('LABELS', `LABEL ${labels}`))
  return await lab.runtime.build(
    Readable.from(pack(directory)),
    {
      tag,
      dockerfile: 'Dockerfile',
      buildArgs: {},
      owner,
      isLabelled: true,
      memoryBytes: 256 * 2 ** 20,
      cpus: 1
    },
    { onLine: () => {}, signal: new AbortController().signal }
  )
}

engineTest(
  'clearing the cache of one application removes its unneeded steps, and neither its images nor those of others',
  async t => {
    const lab = startLab(t)
    const [mine, others] = [randomUUID(), randomUUID()]
    const twoStages = (word: string) =>
      `FROM busybox:lab AS build\nLABELS\nRUN dd if=/dev/zero of=/big bs=1M count=5 && echo ${word} > /word\nFROM busybox:lab\nLABELS\nCOPY --from=build /word /word\n`
    const kept = await build(t, lab, {
      dockerfile: twoStages('one'),
      tag: `lab-${mine}:1`,
      applicationId: mine
    })
    await build(t, lab, { dockerfile: twoStages('two'), tag: `lab-${others}:1`, applicationId: others })
    const five = 5 * 2 ** 20
    t.ok((await lab.runtime.buildCacheBytes({ applicationId: mine })) >= five)
    t.ok(
      (await lab.runtime.buildCacheBytes({ applicationId: mine })) < five * 1.5,
      'the base image is not counted'
    )
    t.equal(await lab.runtime.buildCacheBytes({ applicationId: randomUUID() }), 0)

    await lab.runtime.clearBuildCache({ applicationId: mine })
    t.equal(await lab.runtime.buildCacheBytes({ applicationId: mine }), 0)
    t.ok((await lab.runtime.buildCacheBytes({ applicationId: others })) >= five)
    t.equal((await lab.runtime.image(`lab-${mine}:1`))?.id, kept.id)
    t.ok(await lab.runtime.image('busybox:lab'))
  }
)

engineTest('a step from which a container was made stays', async t => {
  const lab = startLab(t)
  const applicationId = randomUUID()
  const { id } = await build(t, lab, {
    dockerfile: 'FROM busybox:lab\nLABELS\nRUN dd if=/dev/zero of=/big bs=1M count=2\n',
    tag: `lab-${applicationId}:1`,
    applicationId
  })
  const container = await lab.docker.createContainer({
    Image: id,
    Cmd: ['true'],
    Labels: { 'busbar-instance': lab.instanceId }
  })
  // Another image takes its name.
  await build(t, lab, {
    dockerfile: 'FROM busybox:lab\nLABELS\nRUN true\n',
    tag: `lab-${applicationId}:1`,
    applicationId
  })
  t.equal(await lab.runtime.buildCacheBytes({ applicationId }), 0)
  await lab.runtime.clearBuildCache({ applicationId })
  t.ok(await lab.docker.getImage(id).inspect())
  await container.remove()
  t.ok((await lab.runtime.buildCacheBytes({ applicationId })) >= 2 * 2 ** 20)
})

engineTest(
  'volumes are made with the labels of their owner, measured, and removed; those of others are left alone',
  async t => {
    const lab = startLab(t)
    const { runtime, docker } = lab
    const owner = { projectId: lab.projectId, applicationId: randomUUID() }
    const name = `lab-volume-${lab.instanceId.slice(0, 8)}`
    t.same(await runtime.volumes(owner), [])
    await runtime.ensureVolume(name, owner)
    await runtime.ensureVolume(name, owner)
    await t.rejects(runtime.ensureVolume(name, { ...owner, applicationId: randomUUID() }), {
      status: 409,
      code: 'E_VOLUME_FOREIGN',
      message: new RegExp(name)
    })
    t.match((await docker.getVolume(name).inspect()).Labels, {
      'managed-by': 'busbar',
      'application-id': owner.applicationId,
      'busbar-instance': lab.instanceId
    })

    const writer = await docker.createContainer({
      Image: 'busybox:lab',
      Cmd: ['sh', '-c', 'dd if=/dev/zero of=/v/x bs=1M count=3; sleep 600'],
      HostConfig: { Binds: [`${name}:/v`] },
      StopTimeout: 0
    })
    t.teardown(async () => await writer.remove({ force: true }).catch(() => undefined))
    await writer.start()
    const full = await until(async () => {
      const [volume] = await runtime.volumes(owner)
      return (volume?.sizeBytes ?? 0) >= 3 * 2 ** 20 ? volume : undefined
    }, 'the volume to fill')
    t.equal(full.name, name)
    await Promise.all(
      [1, 2, 3].map(async () => {
        t.equal((await runtime.volumes(owner)).length, 1)
      })
    )

    await t.rejects(runtime.removeVolume(name), { status: 409, code: 'E_VOLUME_IN_USE' })
    await runtime.releaseVolume(name)
    await runtime.removeVolume(name)
    await runtime.removeVolume(name)
    await runtime.releaseVolume(name)
    t.same(await runtime.volumes(owner), [])

    const foreign = `lab-foreign-${lab.instanceId.slice(0, 8)}`
    await docker.createVolume({ Name: foreign })
    t.teardown(async () => await docker.getVolume(foreign).remove())
    for (const act of [runtime.removeVolume, runtime.releaseVolume]) {
      await t.rejects(act.call(runtime, foreign), { code: 'E_VOLUME_FOREIGN' })
    }
    await t.rejects(runtime.ensureVolume(foreign, owner), { code: 'E_VOLUME_FOREIGN' })
    await t.rejects(runtime.removeVolume('../x'), { code: 'E_VOLUME_NAME' })
  }
)

engineTest(
  'of everybody, the steps of builds that have ended go, and not those that a build goes on from',
  async t => {
    const lab = startLab(t)
    const [ended, elsewhere, running] = [randomUUID(), randomUUID(), randomUUID()]
    const failing = (word: string, ...more: string[]) =>
      `FROM busybox:lab\nLABELS\nRUN echo ${word} > /word\n${more.map(step => `RUN ${step}\n`).join('')}`
    const countOf = async (applicationId: string): Promise<number> => {
      const { length } = await lab.docker.listImages({
        all: true,
        filters: { label: [`application-id=${applicationId}`] }
      })
      return length
    }
    for (const applicationId of [ended, elsewhere, running])
      await t.rejects(
        build(t, lab, {
          dockerfile: failing(applicationId, 'false'),
          tag: `lab-${applicationId}:1`,
          applicationId
        })
      )
    const old = await countOf(running)
    t.ok(old > 1)
    const goesOn = build(t, lab, {
      dockerfile: failing(
        running,
        'i=0; until [ -e /told ] || [ $i -gt 600 ]; do i=$((i+1)); sleep 0.1; done'
      ),
      tag: `lab-${running}:1`,
      applicationId: running
    })
    const step = async () =>
      (await lab.docker.listContainers()).find(({ Command }) => Command.includes('until [ -e /told ]'))
    await until(async () => (await step()) !== undefined, 'the build to be at its step')
    await lab.runtime.clearBuildCache(
      {},
      { ends: [], newest: 0, after: new Date(0), applications: new Set([elsewhere]) }
    )
    t.equal(await countOf(ended), 0)
    t.ok((await countOf(elsewhere)) > 1)
    t.equal(await countOf(running), old, 'it began with what an earlier one has made')
    const telling = await lab.docker.getContainer((await step())?.Id ?? '').exec({ Cmd: ['touch', '/told'] })
    await telling.start({})
    await t.resolves(goesOn)
    const base = await lab.docker.getImage('busybox:lab').inspect()
    t.ok((await lab.runtime.continuedImages()).has(base.Id))
    await lab.runtime.clearBuildCache({})
  }
)
