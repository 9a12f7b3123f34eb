import { existsSync } from 'node:fs'
import { until } from 'busbar/sdk/testing'
import { test } from 'tap'
import { requireEngine } from '../../../lab/engine.js'
import { engine, hasImage, sample } from '../../deployments/test/deploy-lab.js'
import { get, madeName, openToolLab, secret, valuesOf, volumesOf, withVariables } from './tool-lab.js'

test('an application is built with buildpacks: its override, builder image and buildpacks reach pack, and its secrets no argument', async t => {
  if (!(await requireEngine(t))) return
  const setup = await openToolLab(t)
  const { lab, tools } = setup
  const admin = await lab.k.as.session()
  const application = await lab.application('packed', {
    ...sample('one'),
    'buildpacks/own/buildpack.toml': 'x'
  })
  const { status, body } = await admin.put(application.path, {
    build_type_override: 'buildpacks',
    builder_image: 'busybox:lab',
    custom_buildpacks: '["docker://node:20", "buildpacks/own", "heroku/nodejs@4.1.0"]'
  })
  t.equal(status, 200, JSON.stringify(body))
  await withVariables(setup, application)
  const deployment = await application.deployed()
  t.match(deployment, { status: 'success' }, deployment.error_message ?? '')

  const { argv, env, cwd } = await tools.called('pack')
  const short = application.id.slice(0, 8)
  t.match(argv.slice(0, 2), ['build', madeName(application.id)])
  t.same(valuesOf(argv, '--builder'), ['busybox:lab'])
  t.same(valuesOf(argv, '--buildpack'), ['docker://node:20', 'buildpacks/own', 'heroku/nodejs@4.1.0'])
  t.same(valuesOf(argv, '--cache'), [
    `type=build;format=volume;name=busbar-cnb-cache-${short};type=launch;format=volume;name=busbar-cnb-launch-${short}`
  ])
  t.same(valuesOf(argv, '--path'), [cwd])
  t.same(valuesOf(argv, '--docker-host'), ['inherit'])
  t.match(
    valuesOf(argv, '--network'),
    [/^busbar\.builds\./],
    'where its containers reach neither the machine nor each other'
  )
  t.notOk(argv.includes('--trust-builder'))
  t.notOk(argv.includes('--clear-cache'))
  t.same(valuesOf(argv, '--env').sort(), [
    'API_KEY',
    'DOCKER_HOST=tcp://203.0.113.1:1',
    'GREETING',
    'MULTILINE',
    'NODE_OPTIONS=--max-old-space-size=512'
  ])
  t.notMatch(argv.join(' '), secret)
  t.match(env, { API_KEY: secret, GREETING: 'a, b = c', MULTILINE: 'one\ntwo' })
  t.match(env.DOCKER_HOST, /^(unix|tcp):\/\/(?!203)/, 'the engine of the platform')
  t.notOk('LD_PRELOAD' in env)
  t.match(env.HOME, /data\/builds\/tools\/pack$/)
  t.match(env.TMPDIR, new RegExp(`builds/work/${deployment.id}`))
  t.notOk(existsSync(cwd), 'the source is gone')

  const log: string = deployment.build_logs
  t.match(log, /===> BUILDING/)
  t.notMatch(log, /\\u001b/)
  t.match(log, /"stream":"stderr","msg":"a word on stderr"/)
  t.match(log, /pack is not given LD_PRELOAD/)
  t.notMatch(log, secret)

  const image = await engine.getImage(deployment.image_tag).inspect()
  t.match(image.Config.Labels, {
    'managed-by': 'busbar',
    'application-id': application.id,
    'project-id': lab.projectId
  })
  t.ok(image.Config.Env.includes('MADE_BY=pack'))
  t.notOk(await hasImage(argv[1] ?? ''), 'the image without labels is gone')
  const { direct_url: url } = await application.read()
  t.equal(await (await fetch(url)).text(), 'one')

  await t.test(
    'what its builds keep is two volumes with its labels, measured, and removed when it is cleared and when the application is deleted, as is what a killed platform has left',
    async t => {
      t.same(await volumesOf(application.id), [`busbar-cnb-cache-${short}`, `busbar-cnb-launch-${short}`])
      const cache = await get(lab, `${application.path}/cache`)
      const mebibyte = 2 ** 20
      t.ok(
        cache.build_cache_bytes >= 4 * mebibyte && cache.build_cache_bytes < 4.5 * mebibyte,
        JSON.stringify(cache)
      )
      t.ok(cache.launch_cache_bytes >= 2 * mebibyte && cache.launch_cache_bytes < 2.5 * mebibyte)
      t.equal(cache.total_bytes, cache.build_cache_bytes + cache.launch_cache_bytes)
      t.match(await admin.delete(`${application.path}/cache`), { status: 200, body: { status: 'cleared' } })
      t.same(await volumesOf(application.id), [])
      t.same(await get(lab, `${application.path}/cache`), {
        build_cache_bytes: 0,
        launch_cache_bytes: 0,
        total_bytes: 0
      })
      t.equal(await (await fetch(url)).text(), 'one', 'what runs is not touched')

      t.match(await application.deployed(), { status: 'success' })
      t.ok((await tools.called('pack')).argv.includes('--clear-cache'), 'the next build starts anew')
      t.match(await application.deployed(), { status: 'success' })
      t.notOk((await tools.called('pack')).argv.includes('--clear-cache'), 'and only that one')

      await engine.getImage('busybox:lab').tag({ repo: `busbar-build-${application.id}`, tag: 'latest' })
      t.equal((await admin.delete(application.path)).status, 200)
      await until(async () => (await volumesOf(application.id)).length === 0, 'the volumes to go', 60_000)
      await until(
        async () =>
          (await engine.listImages({ all: true, filters: { label: [`application-id=${application.id}`] } }))
            .length === 0,
        'the images to go',
        60_000
      )
      await until(
        async () => !(await hasImage(`busbar-build-${application.id}:latest`)),
        'the image without labels to go'
      )
    }
  )

  await t.test('an image that was built for another application is no builder', async t => {
    const choosing = await lab.application('choosing', sample('three'), { build_type: 'buildpacks' })
    const other = await lab.application('other', sample('two'), { build_type: 'nixpacks' })
    const { image_tag: foreign } = await other.deployed()
    t.equal((await admin.put(choosing.path, { builder_image: foreign })).status, 200)
    t.match(await choosing.deployed(), {
      status: 'failed',
      error_message: /was built for another application/
    })
    t.equal(
      (
        await admin.put(choosing.path, {
          builder_image: 'busybox:lab',
          custom_buildpacks: JSON.stringify([`docker://${foreign as string}`])
        })
      ).status,
      200
    )
    t.match(await choosing.deployed(), {
      status: 'failed',
      error_message: /was built for another application/
    })
    t.equal((await admin.put(choosing.path, { custom_buildpacks: '["/etc"]' })).status, 200)
    t.match(await choosing.deployed(), {
      status: 'failed',
      error_message: /the buildpack \/etc is not used: it leads out of the repository/
    })
  })
})
