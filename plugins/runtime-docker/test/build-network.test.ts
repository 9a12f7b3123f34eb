import { randomUUID } from 'node:crypto'
import { Readable } from 'node:stream'
import { until } from 'busbar/sdk/testing'
import type { Test } from 'tap'
import { pack } from 'tar-stream'
import { engineTest, type Lab, startLab } from './lab.js'

function contextOf(dockerfile: string): Readable {
  const tar = pack()
  tar.entry({ name: 'Dockerfile' }, dockerfile)
  tar.finalize()
  return Readable.from(tar)
}

/** Begins a build of the project whose only step runs until the test ends; the id of that step's container. */
async function startStep(t: Test, { runtime, docker }: Lab, projectId: string): Promise<string> {
  const ended = new AbortController()
  const mark = `step-${randomUUID()}`
  const building = runtime
    .build(
      contextOf(`FROM busybox:lab\nRUN : ${mark}; sleep 600\n`),
      {
        tag: `lab-${projectId}:${mark}`,
        dockerfile: 'Dockerfile',
        buildArgs: {},
        owner: { projectId },
        memoryBytes: 2 ** 28,
        cpus: 1,
        noCache: true
      },
      { signal: ended.signal, onLine: () => {} }
    )
    .catch(() => undefined)
  t.teardown(async () => {
    ended.abort()
    await building
  })
  return await until(async () => {
    const running = await docker.listContainers()
    return running.find(({ Command }) => Command.includes(mark))?.Id
  }, 'the step of the build runs')
}

const networksOf = async ({ docker }: Lab, containerId: string): Promise<readonly string[]> =>
  Object.keys((await docker.getContainer(containerId).inspect()).NetworkSettings.Networks)

engineTest(
  'steps of builds of two projects are on no network together, and on none with a container',
  async t => {
    const lab = startLab(t)
    const [first, second] = [lab.projectId, randomUUID()]
    const services = await lab.runtime.ensureNetwork({ id: first, slug: `b${first.slice(0, 8)}` })
    const [one, two, three] = await Promise.all([
      startStep(t, lab, first),
      startStep(t, lab, second),
      startStep(t, lab, first)
    ])
    const networks = await networksOf(lab, one)
    t.equal(networks.length, 1)
    t.not(networks[0], services)
    t.same(await networksOf(lab, three), networks, 'the project has one for all of its builds')
    const [other, ...more] = await networksOf(lab, two)
    t.same(more, [])
    t.not(other, networks[0])
    for (const [name, projectId] of [
      [networks[0] ?? '', first],
      [other ?? '', second]
    ] as const) {
      const { Labels, IPAM, Options } = await lab.docker.getNetwork(name).inspect()
      t.match(Labels, { 'project-id': projectId, 'busbar-instance': lab.instanceId })
      t.match(IPAM?.Config?.[0]?.Subnet, /\/28$/)
      t.equal(Options?.['com.docker.network.bridge.enable_icc'], 'false')
    }
  }
)

engineTest(
  'the network for builds goes with its project, and is never taken for the one of its containers',
  async t => {
    const { runtime, docker, projectId } = startLab(t)
    const all = async (): Promise<string[]> =>
      (await docker.listNetworks({ filters: { label: [`project-id=${projectId}`] } }))
        .map(({ Name }) => Name)
        .sort()
    const names = await Promise.all([
      runtime.ensureBuildNetwork(projectId),
      runtime.ensureBuildNetwork(projectId),
      runtime.ensureNetwork({ id: projectId, slug: `g${projectId.slice(0, 8)}` })
    ])
    t.equal(names[0], names[1])
    t.same(await all(), [names[2], names[0]].sort())
    t.same(await runtime.networkOwners(), [projectId])
    t.equal(await runtime.ensureNetwork({ id: projectId, slug: 'renamed-since' }), names[2])

    await runtime.removeNetworks(projectId)
    t.same(await all(), [])
    const again = await runtime.ensureBuildNetwork(projectId)
    t.same(await runtime.networkOwners(), [projectId], 'one that never had a container is found as well')
    t.same(await all(), [again])
    await runtime.removeNetworks(projectId)
    t.same(await runtime.networkOwners(), [])
  }
)
