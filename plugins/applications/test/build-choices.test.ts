import { createTestKernel } from 'busbar/sdk/testing'
import { test } from 'tap'
import { parsePlatform, parseTarget } from '../build-choices.js'

test('a platform is one system, architecture and variant, by the names that images have for them', async t => {
  for (const [written, platform] of [
    [null, null],
    ['', null],
    ['  ', null],
    ['linux/amd64', 'linux/amd64'],
    [' Linux/ARM64 ', 'linux/arm64'],
    ['linux/aarch64', 'linux/arm64'],
    ['linux/x86_64', 'linux/amd64'],
    ['linux/arm/v7', 'linux/arm/v7'],
    ['linux/arm64/v8', 'linux/arm64/v8']
  ] as const)
    t.equal(parsePlatform(written), platform, String(written))
  for (const written of [
    'linux',
    'arm64',
    'windows/amd64',
    'linux/amd64,linux/arm64',
    'linux/vax',
    'linux/constructor',
    'linux/arm/7',
    'linux/arm/v7/x',
    'linux//v7',
    '$TARGETPLATFORM'
  ])
    t.throws(() => parsePlatform(written), { status: 400, message: /build_platform/ }, written)
})

test('a target is the name or the number of a stage', async t => {
  for (const [written, target] of [
    [null, null],
    [' ', null],
    [' Web ', 'Web'],
    ['build-1.2_x', 'build-1.2_x'],
    ['0', '0']
  ] as const)
    t.equal(parseTarget(written), target, String(written))
  for (const written of ['a b', '--x', 'a=b', 'a/b', '$x', 'x'.repeat(129)])
    t.throws(() => parseTarget(written), { status: 400, message: /build_target/ }, written)
})

test('target and platform of an application are set, changed and cleared, and a deploy applies them', async t => {
  const k = await createTestKernel()
  t.teardown(() => k.close())
  const ann = await k.as.session('ann')
  const { body: project } = await ann.post('/api/projects', { name: 'x', slug: 'x' })
  const all = `/api/projects/${project.id}/applications`
  const fields = {
    name: 'web',
    type: 'git',
    build_type: 'dockerfile',
    source_repo: 'https://example.com/web.git'
  }
  const made = await ann.post(all, { ...fields, build_target: 'web', build_platform: 'linux/aarch64' })
  t.match(made, { status: 201, body: { build_target: 'web', build_platform: 'linux/arm64' } })
  const path = `${all}/${made.body.id}`
  // As if it had been deployed: what a deploy is to apply counts from then on.
  await k.query('update applications.application set last_deployed_at = now()')
  t.match((await ann.put(path, { build_target: 'web' })).body, { pending_change: '' })
  t.match((await ann.put(path, { build_target: 'worker' })).body, {
    build_target: 'worker',
    build_platform: 'linux/arm64',
    pending_change: 'source'
  })
  await k.query('update applications.application set source_changed_at = null')
  t.match((await ann.put(path, { build_platform: null })).body, {
    build_platform: null,
    pending_change: 'source'
  })
  t.match((await ann.put(path, { build_target: '' })).body, { build_target: null })
  for (const body of [{ build_target: 'a b' }, { build_platform: 'amd64' }]) {
    t.equal((await ann.put(path, body)).status, 400)
    t.equal((await ann.post(all, { ...fields, ...body })).status, 400)
  }
  const image = { name: 'img', type: 'image', build_type: 'image', source_image: 'busybox:lab' }
  for (const body of [{ build_target: 'web' }, { build_platform: 'linux/arm64' }])
    t.equal((await ann.post(all, { ...image, ...body })).status, 400, 'an image is not built')
  await ann.put(path, { build_target: 'web', build_platform: 'linux/arm64' })
  t.match(
    (await ann.put(`${path}/source`, { type: 'image', build_type: 'image', source_image: 'busybox:lab' }))
      .body,
    { build_target: null, build_platform: null },
    'another source has none of them'
  )
})
