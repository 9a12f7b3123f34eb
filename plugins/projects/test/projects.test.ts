import { createTestKernel } from 'busbar/sdk/testing'
import { test } from 'tap'
import { describeOwned } from '../project-service.js'

test('projects over HTTP', async t => {
  const k = await createTestKernel()
  t.teardown(() => k.close())
  const admin = await k.as.session()
  const ann = await k.as.session('ann')
  const bob = await k.as.session('bob')
  const create = async (client: typeof ann, slug: string) =>
    (await client.post('/api/projects', { name: slug, slug })).body

  await t.test(
    'a project is created with the slug as sent, belongs to its maker and is shared with nobody',
    async t => {
      const answer = await ann.post('/api/projects', {
        name: 'My Shop',
        slug: 'my-shop',
        user_id: admin.userId,
        shared: true
      })
      t.equal(answer.status, 201)
      t.match(answer.body, {
        name: 'My Shop',
        slug: 'my-shop',
        user_id: ann.userId,
        shared: false,
        server_id: null
      })
      t.same(Object.keys(answer.body).sort(), [
        'created_at',
        'id',
        'my_role',
        'name',
        'server_id',
        'shared',
        'slug',
        'updated_at',
        'user_id'
      ])
      t.same((await ann.get(`/api/projects/${answer.body.id}`)).body, answer.body)
    }
  )

  await t.test('a slug that is taken is a conflict that names it', async t => {
    await create(ann, 'taken')
    const answer = await bob.post('/api/projects', { name: 'x', slug: 'taken' })
    t.equal(answer.status, 409)
    t.match(answer.body, { code: 'E_PROJECT_SLUG_TAKEN', error: /taken/ })
  })

  await t.test('a name or slug that cannot be is refused by the name of the field', async t => {
    for (const slug of ['Shop', '-a', 'a-', 'a_b', '', 'a'.repeat(41), 'a/b']) {
      const answer = await ann.post('/api/projects', { name: 'x', slug })
      t.equal(answer.status, 400, slug)
      t.match(answer.body.error, /slug/)
    }
    for (const body of [
      { slug: 'x' },
      { name: '  ', slug: 'x' },
      { name: 'a\nb', slug: 'x' },
      { name: 5, slug: 'x' },
      { name: 'n'.repeat(101), slug: 'x' }
    ]) {
      const answer = await ann.post('/api/projects', body)
      t.equal(answer.status, 400)
      t.match(answer.body.error, /name/)
    }
    t.equal((await ann.post('/api/projects', { name: 'x', slug: 'a'.repeat(40) })).status, 201)
  })

  await t.test('a rename changes the name alone, and an absent name keeps it', async t => {
    const project = await create(ann, 'rename')
    t.match((await ann.put(`/api/projects/${project.id}`, { name: 'New', slug: 'other' })).body, {
      name: 'New',
      slug: 'rename'
    })
    t.match(await ann.put(`/api/projects/${project.id}`, {}), { status: 200, body: { name: 'New' } })
  })

  await t.test('a member sees own and shared projects, an admin all, newest first', async t => {
    const cyd = await k.as.session('cyd')
    const mine = await create(cyd, 'cyds')
    const shared = await create(ann, 'shared')
    const hidden = await create(ann, 'hidden')
    t.match(await ann.put(`/api/projects/${shared.id}/sharing`, { shared: true }), {
      status: 200,
      body: { shared: true }
    })
    const slugs = async (client: typeof cyd) =>
      (await client.get('/api/projects')).body.map((row: { slug: string }) => row.slug)
    t.same(await slugs(cyd), ['shared', 'cyds'])
    t.same((await slugs(admin)).slice(0, 3), ['hidden', 'shared', 'cyds'])
    t.equal((await cyd.get(`/api/projects/${hidden.id}`)).status, 404)
    t.equal((await cyd.get(`/api/projects/${shared.id}`)).status, 200)
    t.match(await ann.put(`/api/projects/${shared.id}/sharing`, { shared: false }), {
      status: 200,
      body: { shared: false }
    })
    t.equal((await cyd.get(`/api/projects/${shared.id}`)).status, 404, 'at once, although it was remembered')
    t.same(await slugs(cyd), ['cyds'])
    t.equal((await cyd.get(`/api/projects/${mine.id}`)).status, 200)
  })

  await t.test(
    'the list tells how many there are and can be narrowed; it leaves out an unset last_deployed_at',
    async t => {
      for (const slug of ['one', 'two', 'three']) await create(ann, `listed-${slug}`)
      const all = await admin.get('/api/projects')
      t.equal(all.headers['x-total-count'], String(all.body.length))
      t.notOk('last_deployed_at' in all.body[0])
      const page = await admin.get('/api/projects?limit=2&offset=1')
      t.same(page.body, all.body.slice(1, 3))
      t.equal(page.headers['x-total-count'], String(all.body.length))
      t.same(
        (await admin.get('/api/projects?limit=x&offset=-1')).body,
        all.body,
        'bad values are the defaults'
      )
      const beyond = await admin.get('/api/projects?offset=1000')
      t.match(beyond, { body: [], headers: { 'x-total-count': String(all.body.length) } })
    }
  )

  await t.test('a pinned token sees its projects only and creates none', async t => {
    const pinned = await create(ann, 'pinned')
    const other = await create(ann, 'not-pinned')
    const token = await k.as.token('write', { user: 'ann', pins: [pinned.id] })
    t.same(
      (await token.get('/api/projects')).body.map((row: { id: string }) => row.id),
      [pinned.id]
    )
    t.equal((await token.get(`/api/projects/${other.id}`)).status, 403)
    t.equal((await token.post('/api/projects', { name: 'x', slug: 'x-1' })).status, 403)
    t.equal((await token.put(`/api/projects/${pinned.id}`, { name: 'by token' })).status, 200)
    t.equal((await token.delete(`/api/projects/${pinned.id}`)).status, 403)
  })

  await t.test('in a shared project only the owner and admins delete, share and unshare', async t => {
    const project = await create(ann, 'ours')
    await ann.put(`/api/projects/${project.id}/sharing`, { shared: true })
    t.equal((await bob.put(`/api/projects/${project.id}`, { name: 'by bob' })).status, 200)
    t.equal((await bob.put(`/api/projects/${project.id}/sharing`, { shared: false })).status, 403)
    t.equal((await bob.delete(`/api/projects/${project.id}`)).status, 403)
    t.equal((await admin.put(`/api/projects/${project.id}/sharing`, { shared: false })).status, 200)
    t.match(await ann.put(`/api/projects/${project.id}/sharing`, {}), {
      status: 400,
      body: { error: /shared/ }
    })
  })

  await t.test('an admin transfers a project to a user that exists', async t => {
    const project = await create(ann, 'moves')
    t.equal((await ann.put(`/api/projects/${project.id}/transfer`, { user_id: bob.userId })).status, 403)
    t.match(await admin.put(`/api/projects/${project.id}/transfer`, { user_id: project.id }), {
      status: 400,
      body: { code: 'E_PROJECT_NO_SUCH_USER' }
    })
    t.match(await admin.put(`/api/projects/${project.id}/transfer`, { user_id: bob.userId }), {
      status: 200,
      body: { user_id: bob.userId }
    })
    t.equal((await ann.get(`/api/projects/${project.id}`)).status, 404)
    t.equal((await bob.get(`/api/projects/${project.id}`)).status, 200)
  })

  await t.test('a user who owns a project cannot be deleted', async t => {
    const eve = await k.as.session('eve')
    const [one, two] = [await create(eve, 'eves'), await create(eve, 'eves-second')]
    const refused = async (error: string) => {
      t.match(await admin.delete(`/api/users/${eve.userId}`), {
        status: 409,
        body: { code: 'E_USER_IN_USE', error }
      })
    }
    await refused('this user still owns 2 projects: transfer or delete them first')
    await admin.put(`/api/projects/${one.id}/transfer`, { user_id: bob.userId })
    await refused('this user still owns 1 project: transfer or delete it first')
    await admin.put(`/api/projects/${two.id}/transfer`, { user_id: bob.userId })
    t.equal((await admin.delete(`/api/users/${eve.userId}`)).status, 200)
  })

  await t.test('projects whose clean-up is not done are named apart', async t => {
    t.equal(describeOwned({ owned: 0, deleting: 0 }), undefined)
    t.equal(
      describeOwned({ owned: 3, deleting: 1 }),
      'this user still owns 3 projects: transfer or delete them first'
    )
    t.equal(
      describeOwned({ owned: 0, deleting: 1 }),
      'the clean-up of 1 deleted project of this user is not done yet: try again later'
    )
    t.equal(
      describeOwned({ owned: 0, deleting: 2 }),
      'the clean-up of 2 deleted projects of this user is not done yet: try again later'
    )
  })
})
