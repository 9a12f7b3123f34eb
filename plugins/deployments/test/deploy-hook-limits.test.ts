import { createTestKernel, type TestAnswer, testClock } from 'busbar/sdk/testing'
import { test } from 'tap'

const perMinute = 30

test('calls of a deploy hook count for the hook; those with a token of nobody count for the address alone', async t => {
  // Nothing is to be deployed: it is about who is counted. The minute must not end under way.
  const k = await createTestKernel({
    clock: testClock(),
    environment: { DOCKER_HOST: 'unix:///nonexistent/docker.sock', TRUST_PROXY: '127.0.0.1' }
  })
  t.teardown(() => k.close())
  const admin = await k.as.session()
  const nobody = k.as.anonymous()
  const project = await admin.post('/api/projects', { name: 'Shop', slug: 'shop' })
  const hookOf = async (name: string): Promise<string> => {
    const applications = `/api/projects/${project.body.id as string}/applications`
    const made = await admin.post(applications, {
      name,
      type: 'image',
      build_type: 'image',
      source_image: 'busybox:lab'
    })
    return (await admin.post(`${applications}/${made.body.id as string}/deploy-hook`)).body.path
  }
  const [mine, yours] = [await hookOf('mine'), await hookOf('yours')]
  const ofNobody = `/api/webhooks/deploy/busbar_hook_${'x'.repeat(43)}`
  const call = async (path: string, from: string): Promise<TestAnswer> =>
    await nobody.post(path, undefined, { headers: { 'x-forwarded-for': from } })
  const times = async (count: number, path: string, from: string): Promise<number[]> => {
    const seen: number[] = []
    for (let n = 0; n < count; n++) seen.push((await call(path, from)).status)
    return seen
  }
  const [host, elsewhere] = ['203.0.113.1', '203.0.113.2']

  t.same(
    await times(perMinute + 2, ofNobody, host),
    [...Array(perMinute).fill(404), 429, 429],
    'tokens of nobody, by address'
  )
  t.equal((await call(ofNobody.slice(0, -1), host)).status, 429, 'whatever is wrong with them')
  t.match(await call(mine, host), { status: 202, headers: { 'x-ratelimit-remaining': '29' } })
  t.same(await times(perMinute, mine, host), [...Array(perMinute - 1).fill(202), 429], 'a hook has its own')
  t.match(await call(mine, elsewhere), {
    status: 429,
    body: /^rate limit exceeded: 30 requests; try again in \d+ s\n$/,
    headers: { 'retry-after': /^\d+$/, 'x-ratelimit-limit': '30', 'x-ratelimit-remaining': '0' }
  })
  t.equal((await call(yours, host)).status, 202, 'and so has another one from the same address')
  t.equal((await call(ofNobody, elsewhere)).status, 404)
})
