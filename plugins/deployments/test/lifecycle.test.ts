import { until } from 'busbar/sdk/testing'
import { test } from 'tap'
import { requireEngine } from '../../../lab/engine.js'
import { engine, openLab, sample } from './deploy-lab.js'

test('deployments and what happens around them', async t => {
  if (!(await requireEngine(t))) return
  const lab = await openLab()
  t.teardown(() => lab.close())
  const admin = async () => await lab.k.as.session()
  const web = await lab.application('web', sample('one'))
  await web.deployed()
  const { direct_url: address } = await web.read()
  const served = async (): Promise<string> => await (await fetch(address)).text()

  await t.test('a stopped application has no address, a started one has the same as before', async t => {
    const version = await served()
    t.equal((await (await admin()).post(`${web.path}/stop`)).status, 200)
    t.match(await web.read(), { status: 'stopped', direct_url: null })
    t.match(await fetch(address), { status: 503 })
    t.equal((await (await admin()).post(`${web.path}/start`)).status, 200)
    await until(async () => (await web.read()).direct_url === address, 'the address is back')
    await until(async () => (await served().catch(() => '')) === version, 'it serves')
    t.equal((await (await admin()).post(`${web.path}/restart`)).status, 200)
    await until(async () => (await served().catch(() => '')) === version, 'it serves after a restart')
  })

  await t.test(
    'a container that the engine starts again is found at whatever address it has then',
    async t => {
      const version = await served()
      const [container] = await web.containers()
      await engine.getContainer(container?.Id ?? '').restart({ t: 1 })
      await until(async () => (await served().catch(() => '')) === version, 'it serves')
      t.pass()
    }
  )

  await t.test(
    'a container that came back at another address while nobody looked is found when somebody does',
    async t => {
      const version = await served()
      const [found] = await web.containers()
      const container = engine.getContainer(found?.Id ?? '')
      const networkOf = async () => Object.entries((await container.inspect()).NetworkSettings.Networks)[0]
      const [network = '', { IPAddress: before } = { IPAddress: '' }] = (await networkOf()) ?? []
      await lab.k.disable('direct')
      await container.stop({ t: 1 })
      // Takes the address that has become free.
      const other = await engine.createContainer({
        Image: 'busybox:lab',
        Cmd: ['sleep', '600'],
        HostConfig: { NetworkMode: network, Init: true }
      })
      t.teardown(() => other.remove({ force: true }))
      await other.start()
      await container.start()
      t.not((await networkOf())?.[1].IPAddress, before)
      await lab.k.enable('direct')
      await until(async () => (await served().catch(() => '')) === version, 'it serves')
    }
  )

  await t.test('deploying a stopped application starts the new version alone', async t => {
    await (await admin()).post(`${web.path}/stop`)
    await web.push(sample('two'))
    t.match(await web.deployed(), { status: 'success' })
    t.equal(await served(), 'two')
    await until(async () => (await web.containers()).length === 1, 'one container is left')
  })

  await t.test(
    'deploys work while direct addresses are off, and the address comes back with them',
    async t => {
      await lab.k.disable('direct')
      await t.rejects(fetch(address))
      await web.push(sample('without'))
      t.match(await web.deployed(), { status: 'success', switch_served: null })
      t.match(await web.read(), { status: 'running', direct_url: null })
      await until(async () => (await web.containers()).length === 1, 'the old version is cleared away')
      await lab.k.enable('direct')
      await until(
        async () => (await served().catch(() => '')) === 'without',
        'it serves at the address it had'
      )
      t.equal((await web.read()).direct_url, address)
    }
  )

  await t.test(
    'stopping the platform ends the deploy under way with a reason, and the old version serves on',
    async t => {
      const version = await served()
      await web.push(sample('never', 'ok', 'FROM node:20\nRUN echo endless && sleep 600\n'))
      const deployment = await web.deploy()
      await until(
        async () => (await engine.listContainers()).some(({ Command }) => Command.includes('echo endless')),
        'it builds'
      )
      await lab.restart()
      const ended = await web.ended(deployment.id)
      t.match(ended, {
        status: 'failed',
        error_message: 'the platform was stopped during the deploy: deploy again'
      })
      t.notOk(
        (await engine.listContainers()).some(({ Command }) => Command.includes('echo endless')),
        'the build is gone'
      )
      t.equal(await served(), version)
    }
  )
})
