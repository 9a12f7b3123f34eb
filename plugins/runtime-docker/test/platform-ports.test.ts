import type Docker from 'dockerode'
import type { Test } from 'tap'
import { publishedPorts } from '../platform-container.js'
import { engineTest, startLab } from './lab.js'

engineTest('the ports of a platform in a container are those that the engine publishes of it', async t => {
  const { docker, instanceId, runtime } = startLab(t)
  t.equal(await runtime.platformPorts(), null, 'in none of this engine')

  const portsIn = async (t: Test, hostConfig: Docker.HostConfig) => {
    const own = await docker.createContainer({
      Image: 'busybox:lab',
      Cmd: ['sleep', '600'],
      Labels: { 'busbar-instance': instanceId },
      ExposedPorts: { '8080/tcp': {} },
      HostConfig: hostConfig
    })
    // It need not run: what is published is decided when it is made.
    t.teardown(async () => await own.remove({ force: true }))
    return await startLab(t, { environment: { API_CONTAINER_NAME: own.id } }).runtime.platformPorts()
  }
  t.same(await portsIn(t, {}), [])
  t.equal(await portsIn(t, { NetworkMode: 'host' }), null, 'they are those of the machine')
  t.same(
    await portsIn(t, {
      PortBindings: {
        '8080/tcp': [
          { HostIp: '127.0.0.1', HostPort: '18080' },
          { HostIp: '0.0.0.0', HostPort: '' }
        ],
        '53/udp': [{ HostPort: '53' }]
      }
    }),
    [
      { host: '', hostPort: 53, containerPort: 53, protocol: 'udp' },
      { host: '127.0.0.1', hostPort: 18_080, containerPort: 8080, protocol: 'tcp' },
      { host: '', hostPort: 0, containerPort: 8080, protocol: 'tcp' }
    ]
  )
  t.same(publishedPorts(null), [], 'as some engines say it')
  t.same(publishedPorts({ '8080/tcp': null }), [])
})
