import { settingsFrom, until } from 'busbar/sdk/testing'
import { EngineClient } from '../engine-client.js'
import { withHostTools } from '../host/host-tools.js'
import { toolsLabel } from '../host/tool-leftovers.js'
import { imageInstanceLabel } from '../labels.js'
import { settings } from '../settings.js'
import { engineTest, startLab } from './lab.js'
import { watchedEngine } from './watched-engine.js'

engineTest(
  'what a platform killed a moment ago has left of its host tools is removed with the next ones',
  async t => {
    const { docker, instanceId } = startLab(t)
    const [key = '', value = ''] = toolsLabel.split('=')
    const label = [`${imageInstanceLabel}=${instanceId}`, toolsLabel]
    const left = async () =>
      (await docker.listContainers({ all: true, filters: { label } })).map(({ Id: id }) => id)
    const { id } = await docker.createContainer({
      Image: 'busybox:lab',
      Labels: { [imageInstanceLabel]: instanceId, [key]: value }
    })
    t.teardown(
      async () =>
        await docker
          .getContainer(id)
          .remove({ force: true })
          .catch(() => {})
    )
    const seen = await withHostTools(
      new EngineClient(settingsFrom(settings, process.env)),
      instanceId,
      async tools => {
        t.ok((await left()).includes(id), 'another process may be about to start it')
        return await tools.run(['echo', 'here'])
      }
    )
    t.match(seen, { code: 0, output: 'here\n' })
    await until(async () => (await left()).length === 0, 'what was left is gone')
  }
)

engineTest(
  'where host tools may write, no file makes another user of who runs it, and none is a device',
  async t => {
    const { instanceId } = startLab(t)
    const { output } = await withHostTools(
      new EngineClient(settingsFrom(settings, process.env)),
      instanceId,
      async tools => await tools.run(['cat', '/proc/mounts'])
    )
    const run = output.split('\n').find(line => line.split(' ')[1] === '/run')
    t.match(run, / tmpfs rw,/)
    for (const wanted of ['nosuid', 'nodev']) t.ok(run?.split(' ')[3]?.split(',').includes(wanted), wanted)
  }
)

engineTest('host tools come by another image where one is cleared before they are made of it', async t => {
  const { docker, instanceId } = startLab(t)
  let cleared = 0
  const engine = await watchedEngine(t, async asked => {
    if (!asked.startsWith('POST /containers/create') || cleared > 0) return
    const label = [`${imageInstanceLabel}=${instanceId}`, toolsLabel]
    for (const { Id: id } of await docker.listImages({ filters: JSON.stringify({ label }) })) {
      await docker.getImage(id).remove()
      cleared += 1
    }
  })
  const { output } = await withHostTools(
    new EngineClient(settingsFrom(settings, { ...process.env, DOCKER_HOST: engine })),
    instanceId,
    async tools => await tools.run(['echo', 'here'])
  )
  t.equal(cleared, 1)
  t.equal(output, 'here\n')
})
