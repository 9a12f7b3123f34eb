import { until } from 'busbar/sdk/testing'
import { engineTest, startLab } from './lab.js'

engineTest(
  'a project has one network of its own, a /26 with its labels, however often it is asked for',
  async t => {
    const { runtime, docker, projectId, instanceId } = startLab(t)
    const project = { id: projectId, slug: `n${projectId.slice(0, 8)}` }
    const names = await Promise.all([
      runtime.ensureNetwork(project),
      runtime.ensureNetwork(project),
      runtime.ensureNetwork(project)
    ])
    t.same(new Set(names), new Set([`busbar-${project.slug}`]))
    const [network, ...more] = await docker.listNetworks({ filters: { label: [`project-id=${projectId}`] } })
    t.same(more, [])
    t.match(network?.Labels, { 'managed-by': 'busbar', 'busbar-instance': instanceId })
    t.match(network?.IPAM?.Config?.[0]?.Subnet, /^10\.201\.\d+\.\d+\/26$/)
    t.equal(
      await runtime.ensureNetwork({ ...project, slug: 'renamed-since' }),
      `busbar-${project.slug}`,
      'a changed slug does not make another'
    )
    await runtime.removeNetworks(projectId)
    await runtime.removeNetworks(projectId)
    t.same(await docker.listNetworks({ filters: { label: [`project-id=${projectId}`] } }), [])
  }
)

engineTest('a network with containers is not removed, and the refusal names them', async t => {
  const { runtime, projectId, spec } = startLab(t)
  const network = await runtime.ensureNetwork({ id: projectId, slug: `u${projectId.slice(0, 8)}` })
  const id = await runtime.create(spec('stays', network))
  await runtime.start(id)
  await t.rejects(runtime.removeNetworks(projectId), {
    status: 409,
    code: 'E_NETWORK_IN_USE',
    message: /stays-/
  })
})

engineTest(
  'a platform that is itself a container joins the project network to dial, and leaves it before removal',
  async t => {
    const outside = startLab(t)
    // Stands for the platform's own container: named by API_CONTAINER_NAME, on the default network only.
    const own = await outside.docker.createContainer({
      name: `platform-${outside.projectId.slice(0, 8)}`,
      Image: 'busybox:lab',
      Cmd: ['sleep', '600'],
      Labels: { 'busbar-instance': outside.instanceId },
      HostConfig: { Init: true }
    })
    await own.start()
    const { runtime, projectId, spec, docker } = startLab(t, {
      environment: { API_CONTAINER_NAME: `platform-${outside.projectId.slice(0, 8)}` }
    })
    const network = await runtime.ensureNetwork({ id: projectId, slug: `j${projectId.slice(0, 8)}` })
    const id = await runtime.create(
      spec('app', network, {
        command: ['sh', '-c', 'echo inside > /tmp/index.html; exec httpd -f -p 8080 -h /tmp']
      })
    )
    await runtime.start(id)
    const [address] = await Promise.all([runtime.dial(id, 8080), runtime.dial(id, 8080)])

    const answer = await until(async () => {
      const exec = await own.exec({
        Cmd: ['wget', '-qO-', `http://${address.host}:${address.port}/`],
        AttachStdout: true
      })
      const stream = await exec.start({})
      let text = ''
      for await (const chunk of stream) text += String(chunk)
      return text.includes('inside') ? text : undefined
    }, 'the answer inside the network')
    t.match(answer, /inside/)

    await runtime.remove(id)
    await runtime.removeNetworks(projectId)
    t.same(await docker.listNetworks({ filters: { label: [`project-id=${projectId}`] } }), [])
  }
)
