import { until } from 'busbar/sdk/testing'
import { test } from 'tap'
import { requireDockerRegistry, startDockerRegistry } from '../../../lab/docker-registry.js'
import { requireEngine } from '../../../lab/engine.js'
import { containersOf, engine, openLab } from '../../deployments/test/deploy-lab.js'
import { makeImage, push } from './hand-made-image.js'
import { standIns } from './stand-ins.js'

test('what a build may not take from others it does not get by ONBUILD either', async t => {
  if (!(await requireEngine(t)) || !(await requireDockerRegistry(t))) return
  const registry = await startDockerRegistry(t)
  const lab = await openLab()
  t.teardown(async () => await lab.close())
  const victim = await lab.otherProject('victim', {
    Dockerfile: 'FROM busybox:lab\nRUN echo hidden > /secret\nCMD ["httpd", "-f", "-p", "8080"]\n'
  })
  const { image_tag: tag } = await victim.deployed()
  const trigger = `ONBUILD COPY --from=${tag as string} /secret /got\n`
  const attacker = await lab.application('attacker', {
    Dockerfile: `FROM busybox:lab AS a\n${trigger}FROM a\nRUN cat /got\n`
  })
  const isRefused = async (what: string): Promise<void> => {
    const failed = await attacker.deployed()
    t.match(
      failed,
      { status: 'failed', error_message: /was built for another application|carries the trigger/ },
      what
    )
    t.notMatch(failed.build_logs, /hidden/)
  }
  await isRefused('in a stage of the same Dockerfile')

  const onEngine = `onbuild-${Date.now()}:1`
  await makeImage(t, onEngine, `FROM busybox:lab\n${trigger}`)
  await attacker.push({ Dockerfile: `FROM ${onEngine}\nRUN cat /got\n` })
  await isRefused('in an image on the engine')

  const { Id: id } = await engine.getImage(tag as string).inspect()
  const byId = `onbuild-id-${Date.now()}:1`
  await makeImage(t, byId, `FROM busybox:lab\nONBUILD COPY --from=${id} /secret /got\n`)
  await attacker.push({ Dockerfile: `FROM ${byId}\nRUN cat /got\n` })
  await isRefused('by its id')

  const inRegistry = `${registry.host}/onbuild:1`
  await makeImage(t, inRegistry, `FROM busybox:lab\n${trigger}`)
  await push(inRegistry)
  await attacker.push({ Dockerfile: `FROM ${inRegistry}\nRUN cat /got\n` })
  await isRefused('in an image that is pulled for the build')

  const harmless = `onbuild-own-${Date.now()}:1`
  await makeImage(t, harmless, 'FROM busybox:lab\nONBUILD COPY --from=tools /x /x\nONBUILD RUN test -f /x\n')
  await attacker.push({
    Dockerfile: `FROM busybox:lab AS tools\nRUN echo x > /x\nFROM ${harmless}\nCMD ["httpd", "-f", "-p", "8080"]\n`
  })
  t.match(
    await attacker.deployed(),
    { status: 'success', error_message: null },
    'what is copied from a stage of its own it gets'
  )
})

test('what an account was needed for is no builder of another application, and a private base says what helps', async t => {
  if (!(await requireEngine(t)) || !(await requireDockerRegistry(t))) return
  const account = { username: 'deployer', password: 'a-password-0123' }
  const registry = await startDockerRegistry(t, { account })
  const tools = await standIns(t)
  const lab = await openLab({ environment: { PATH: tools.path } })
  t.teardown(async () => await lab.close())
  const admin = await lab.k.as.session()
  const name = `${registry.host}/team/builder:1`
  await makeImage(t, name, 'FROM busybox:lab\nENV PRIVATE=yes\nCMD ["httpd", "-f", "-p", "8080"]\n')
  await push(name, account)

  const from = await lab.application('from', { Dockerfile: `FROM ${name}\n` })
  t.match(
    await from.deployed(),
    {
      status: 'failed',
      error_message:
        /does not hand out the base image .*neither the project nor the installation has an account.*load the image into the engine/
    },
    'while the engine does not have it'
  )

  const owner = await admin.post(`/api/projects/${lab.projectId}/applications`, {
    name: 'owner',
    type: 'image',
    build_type: 'image',
    source_image: name,
    container_port: 8080,
    registry_username: account.username,
    registry_password: account.password
  })
  const path = `/api/projects/${lab.projectId}/applications/${owner.body.id as string}`
  t.equal((await admin.post(`${path}/deploy`)).status, 202)
  await until(async () => (await admin.get(path)).body.status === 'running', 'the private image runs', 60_000)

  t.match(
    await from.deployed(),
    {
      status: 'failed',
      error_message:
        /does not hand out the base image.*neither the project nor the installation has an account/
    },
    'and when it does'
  )
  const packed = await lab.application('packed', { 'index.js': '' }, { build_type: 'buildpacks' })
  t.equal((await admin.put(packed.path, { builder_image: name })).status, 200)
  t.match(await packed.deployed(), {
    status: 'failed',
    error_message: /does not hand out the base image.*neither the project nor the installation has an account/
  })
  t.equal(
    (
      await admin.put(packed.path, {
        builder_image: 'busybox:lab',
        custom_buildpacks: JSON.stringify([`docker://${name}`])
      })
    ).status,
    200
  )
  t.match(await packed.deployed(), { status: 'failed', error_message: /does not hand out the base image/ })
  await tools.behave('denied')
  t.equal(
    (
      await admin.put(packed.path, {
        builder_image: 'busybox:lab',
        custom_buildpacks: null
      })
    ).status,
    200
  )
  t.match(
    await packed.deployed(),
    {
      status: 'failed',
      error_message: /pack was not given an image by its registry: .*unauthorized.*DOCKER_CONFIG/
    },
    'what only pack asks for'
  )
  t.equal((await admin.delete(path)).status, 200)
  await until(async () => (await containersOf(owner.body.id)).length === 0, 'its container is gone', 60_000)
})
