import { memberChanged, projectDirectory } from 'busbar/api/projects'
import { definePlugin } from 'busbar/sdk'
import { createTestKernel, until } from 'busbar/sdk/testing'
import { test } from 'tap'

const later = (): Date => new Date(Date.now() + 60_000)

test('who has a role of their own in a project is its owner and who was a member by then', async t => {
  const k = await createTestKernel()
  t.teardown(() => k.close())
  const [ann, vic] = [await k.as.session('ann'), await k.as.session('vic')]
  const project = (await ann.post('/api/projects', { name: 'Shop', slug: 'shop' })).body.id as string
  const path = `/api/projects/${project}`
  const before = new Date()
  // Its members have become that a millisecond later at least.
  await until(() => new Date() > before, 'the clock has moved')
  await ann.put(`${path}/members`, { email: (await k.user('vic')).email, role: 'viewer' })
  await ann.put(`${path}/sharing`, { shared: true })
  const { usersOf } = k.service(projectDirectory)
  t.same([...(await usersOf(project, later()))].sort(), [ann.userId, vic.userId].sort())
  t.same(await usersOf(project, before), [ann.userId], 'vic came later')
  t.same(await usersOf('3f0c9a52-7d5e-4b1e-8a64-1f0f3b1c9d11', later()), [])
  await ann.delete(`${path}/members/${vic.userId ?? ''}`)
  t.same(await usersOf(project, later()), [ann.userId])
  await k.query('update projects.project set deleting_at = now() where id = $1', [project])
  t.same(await usersOf(project, later()), [], 'nobody has one in a project that is being deleted')
})

test('a new member and another role are events; the same role again is none', async t => {
  const seen: unknown[] = []
  const k = await createTestKernel({
    inline: [
      {
        manifest: { id: 'watcher', requires: { projects: '^0.1.0' } },
        definition: definePlugin({
          id: 'watcher',
          events: on =>
            on(memberChanged, ({ role, before, project }) => void seen.push([project, before, role]))
        })
      }
    ]
  })
  t.teardown(() => k.close())
  const ann = await k.as.session('ann')
  const { email } = await k.user('vic')
  const project = (await ann.post('/api/projects', { name: 'Shop', slug: 'shop' })).body.id as string
  const set = async (role: string, count: number) => {
    await ann.put(`/api/projects/${project}/members`, { email, role })
    await until(() => seen.length === count, `${count} events`)
  }
  await set('viewer', 1)
  await ann.put(`/api/projects/${project}/members`, { email, role: 'viewer' })
  await set('editor', 2)
  t.same(seen, [
    ['Shop', null, 'viewer'],
    ['Shop', 'viewer', 'editor']
  ])
})
