import { createTestKernel } from 'busbar/sdk/testing'
import { test } from 'tap'

test('a list of projects is unchanged until one of them is, or what the caller may do in it', async t => {
  const k = await createTestKernel()
  t.teardown(() => k.close())
  const ann = await k.as.session('ann')
  const bob = await k.as.session('bob')
  const { body: project } = await ann.post('/api/projects', { name: 'Acme', slug: 'acme' })
  const one = `/api/projects/${project.id}`
  let had = await bob.get('/api/projects')
  t.same(had.body, [])
  const again = async () =>
    await bob.get('/api/projects', { headers: { 'if-none-match': String(had.headers.etag) } })
  const changes = async (what: string, projects: readonly object[]): Promise<void> => {
    const now = await again()
    t.match(now, { status: 200, headers: { 'x-total-count': String(projects.length) } }, what)
    t.match(now.body, projects)
    had = now
    t.equal((await again()).status, 304, `and nothing more after ${what}`)
  }
  t.equal((await again()).status, 304)
  const { email } = await k.user('bob')
  await ann.put(`${one}/members`, { email, role: 'viewer' })
  await changes('a membership', [{ my_role: 'viewer' }])
  await ann.put(`${one}/members`, { email, role: 'editor' })
  await changes('a role', [{ my_role: 'editor' }])
  await ann.put(one, { name: 'Renamed' })
  await changes('a name', [{ name: 'Renamed' }])
  await ann.put(`${one}/members`, { email, role: 'viewer' })
  await ann.put(`${one}/sharing`, { shared: true })
  await changes('sharing', [{ my_role: 'editor', shared: true }])
  await ann.put(`${one}/sharing`, { shared: false })
  await ann.delete(`${one}/members/${bob.userId ?? ''}`)
  await changes('an end', [])
})
