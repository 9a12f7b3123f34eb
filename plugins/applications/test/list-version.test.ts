import { applicationAddresses } from 'busbar/api/applications'
import { definePlugin } from 'busbar/sdk'
import { createTestKernel } from 'busbar/sdk/testing'
import { test } from 'tap'

test('a list of applications is unchanged until one of them is, its status and address included', async t => {
  const urls = new Map<string, string>()
  const definition = definePlugin({
    id: 'neighbour',
    contributes: contribute => {
      contribute(applicationAddresses, 'neighbour', { directUrl: id => urls.get(id) ?? null })
    }
  })
  const k = await createTestKernel({
    inline: [{ manifest: { id: 'neighbour', requires: { applications: '^0.1.0' } }, definition }],
    // No engine answers: one that did would say what the status is.
    environment: { DOCKER_HOST: 'unix:///nowhere/docker.sock' }
  })
  t.teardown(() => k.close())
  const ann = await k.as.session('ann')
  const { body: project } = await ann.post('/api/projects', { name: 'Acme', slug: 'acme' })
  const all = `/api/projects/${project.id}/applications`
  const create = async (name: string): Promise<string> =>
    (await ann.post(all, { name, type: 'image', build_type: 'image', source_image: 'busybox:lab' })).body.id

  let had = await ann.get(all)
  t.same(had.body, [])
  /** Asks with the tag of what was answered last. */
  const again = async (query = '') =>
    await ann.get(all + query, { headers: { 'if-none-match': String(had.headers.etag) } })
  const changes = async (what: string, match: object): Promise<void> => {
    const now = await again()
    t.match(now, { status: 200, body: match }, what)
    t.equal((await ann.get(all)).headers.etag, now.headers.etag, 'what is kept has its tag')
    had = now
    t.equal((await again()).status, 304, `and nothing more after ${what}`)
  }
  t.equal((await again()).status, 304)
  const first = await create('First')
  await changes('the first', [{ name: 'First', direct_url: null }])
  const second = await create('Second')
  await changes('the second', [{ name: 'Second' }, { name: 'First' }])
  t.match(await again('?limit=1'), { status: 200, body: [{ name: 'Second' }] })
  await ann.put(`${all}/${first}`, { name: 'Renamed' })
  await changes('a name', [{}, { name: 'Renamed' }])
  await k.query("update applications.application set status = 'running' where id = $1", [first])
  await changes('a status', [{}, { status: 'running' }])
  urls.set(first, 'http://localhost:4000')
  await changes('an address', [{}, { direct_url: 'http://localhost:4000' }])
  urls.set(second, 'http://localhost:4000')
  urls.delete(first)
  await changes('addresses', [{ direct_url: 'http://localhost:4000' }, { direct_url: null }])
  await ann.delete(`${all}/${second}`)
  await changes('an end', [{ name: 'Renamed' }])
  t.equal(had.body.length, 1)
})
