import { randomUUID } from 'node:crypto'
import { createTestKernel, until } from 'busbar/sdk/testing'
import { test } from 'tap'

test('volumes of applications over HTTP', async t => {
  // What is asked here needs no engine, and shows what is answered without one.
  const k = await createTestKernel({ environment: { DOCKER_HOST: 'unix:///nowhere.sock' } })
  t.teardown(() => k.close())
  const ann = await k.as.session('ann')
  const writer = await k.as.token('write', { user: 'ann' })
  const reader = await k.as.token('read', { user: 'ann' })
  const { body: project } = await ann.post('/api/projects', { name: 'x', slug: 'x' })
  let made = 0
  const application = async (): Promise<string> => {
    const { body } = await ann.post(`/api/projects/${project.id}/applications`, {
      name: `web-${made++}`,
      type: 'image',
      build_type: 'image',
      source_image: 'busybox:lab'
    })
    return `/api/projects/${project.id}/applications/${body.id as string}`
  }
  const volumesOf = async (): Promise<string> => `${await application()}/volumes`

  await t.test('a volume is added with its name in lower case, and listed by name', async t => {
    const path = await volumesOf()
    const answer = await writer.post(path, { name: ' My Uploads! ', mount_path: '/app/uploads' })
    t.match(answer, {
      status: 201,
      body: { id: String, name: 'my-uploads', mount_path: '/app/uploads', size_bytes: 0, created_at: String }
    })
    t.same(Object.keys(answer.body).sort(), ['created_at', 'id', 'mount_path', 'name', 'size_bytes'])
    await writer.post(path, { name: 'cache', mount_path: '/var/cache/app' })
    const list = await reader.get(path)
    t.match(list.body, [{ name: 'cache' }, { name: 'my-uploads', id: answer.body.id, size_bytes: 0 }])
    t.equal(list.headers['x-total-count'], '2')
    t.match((await reader.get(`${path}?limit=1&offset=1`)).body, [{ name: 'my-uploads' }])
  })

  await t.test('names that are none, and names that are taken, are refused', async t => {
    const path = await volumesOf()
    for (const name of ['', '---', 'é', 'x'.repeat(41), 5, null])
      t.match(
        await ann.post(path, { name, mount_path: '/data' }),
        { status: 400, body: { field: 'name' } },
        String(name)
      )
    t.equal((await ann.post(path, { name: 'x'.repeat(40), mount_path: '/a' })).status, 201)
    t.equal((await ann.post(path, { name: 'Data', mount_path: '/data' })).status, 201)
    t.match(await ann.post(path, { name: 'data', mount_path: '/other' }), {
      status: 409,
      body: { code: 'E_VOLUME_NAME_TAKEN', field: 'name' }
    })
    t.equal((await ann.post(await volumesOf(), { name: 'data', mount_path: '/data' })).status, 201)
  })

  await t.test('paths without which no container works, or that are not plain, are refused', async t => {
    const path = await volumesOf()
    const refused = [
      ...['/', '/proc', '/sys', '/dev', '/tmp', '/run', '/etc', '/boot', '/bin', '/sbin', '/lib', '/usr'],
      ...[
        '/proc/1',
        '/sys/fs',
        '/dev/shm',
        '/etc/hosts',
        '/etc/hostname',
        '/etc/resolv.conf',
        '/sbin/docker-init'
      ],
      ...['data', './data', '/data/', '//data', '/data//x', '/data/.', '/data/..', '/data/../etc', '/../etc'],
      ...['/da ta', '/data:ro', '/data,x', '/dätä', '/data\n', '/data\0', '/data\\x', '/$HOME', ''],
      `/${'x'.repeat(500)}`,
      `/data/${'x'.repeat(256)}`
    ]
    for (const mount_path of [...refused, 7, null, ['/data']])
      t.match(
        await ann.post(path, { name: 'data', mount_path }),
        { status: 400, body: { field: 'mount_path' } },
        JSON.stringify(mount_path)
      )
    t.match((await ann.get(path)).body, { length: 0 })
    for (const [at, mount_path] of [
      '/data',
      '/usr/share/tessdata',
      '/home/node/.n8n',
      '/tmp/x',
      '/etc/app'
    ].entries())
      t.equal((await ann.post(path, { name: `v${at}`, mount_path })).status, 201, mount_path)
  })

  await t.test('one path has one volume, and another one may lie in it', async t => {
    const path = await volumesOf()
    t.equal((await ann.post(path, { name: 'a', mount_path: '/data' })).status, 201)
    t.match(await ann.post(path, { name: 'b', mount_path: '/data' }), {
      status: 409,
      body: {
        code: 'E_MOUNT_PATH_TAKEN',
        field: 'mount_path',
        error: /a volume is mounted at \/data already/
      }
    })
    t.equal((await ann.post(path, { name: 'b', mount_path: '/data/b' })).status, 201)
    const both = await Promise.all(
      ['c', 'd'].map(async name => (await ann.post(path, { name, mount_path: '/same' })).status)
    )
    t.same(both.sort(), [201, 409], 'of two at once one is added')
  })

  await t.test('files and volumes do not take each other’s paths', async t => {
    const app = await application()
    const file = async (mount_path: string) =>
      await ann.post(`${app}/file-mounts`, { mount_path, content: 'x' })
    const volume = async (name: string, mount_path: string) =>
      await ann.post(`${app}/volumes`, { name, mount_path })
    t.equal((await file('/app/settings')).status, 201)
    t.match(await volume('a', '/app/settings'), { status: 409, body: { error: /a file is mounted/ } })
    t.match(await volume('a', '/app/settings/below'), { status: 409 })
    t.equal((await volume('a', '/app')).status, 201, 'a file may lie in a volume')
    t.match(await file('/app'), { status: 400 }, 'a file lies in a folder')
    t.equal((await volume('b', '/srv/data')).status, 201)
    t.match(await file('/srv/data'), { status: 409, body: { error: /a volume is mounted/ } })
  })

  await t.test('a deleted volume is gone, and its name and path are free', async t => {
    const path = await volumesOf()
    const { body } = await ann.post(path, { name: 'data', mount_path: '/data' })
    t.match(await writer.delete(`${path}/${body.id}`), {
      status: 403,
      body: { error: 'this action requires a session, not a personal access token' }
    })
    t.match(await ann.delete(`${path}/${body.id}`), {
      status: 200,
      body: { status: 'deleted', warning: /the container engine does not say/ }
    })
    t.equal((await ann.delete(`${path}/${body.id}`)).status, 404)
    t.match((await ann.get(path)).body, { length: 0 })
    await until(
      async () => (await ann.post(path, { name: 'data', mount_path: '/data' })).status === 201,
      'its name is free'
    )
  })

  await t.test('an application has 50 volumes at most', async t => {
    const path = await volumesOf()
    for (let at = 0; at < 50; at++) {
      k.resetRateLimits()
      t.equal((await ann.post(path, { name: `v${at}`, mount_path: `/data/${at}` })).status, 201)
    }
    t.match(await ann.post(path, { name: 'more', mount_path: '/more' }), {
      status: 409,
      body: { code: 'E_VOLUME_LIMIT' }
    })
    k.resetRateLimits()
  })

  await t.test('nobody else sees a volume, and no path leads to one of another application', async t => {
    const path = await volumesOf()
    const { body } = await ann.post(path, { name: 'data', mount_path: '/data' })
    const bob = await k.as.session('bob')
    t.equal((await bob.get(path)).status, 404)
    t.equal((await bob.post(path, { name: 'mine', mount_path: '/mine' })).status, 404)
    t.equal((await bob.delete(`${path}/${body.id}?delete_data=true`)).status, 404)
    t.equal((await reader.post(path, { name: 'mine', mount_path: '/mine' })).status, 403)
    t.equal((await (await k.as.anonymous()).get(path)).status, 401)
    t.equal((await ann.delete(`${await volumesOf()}/${body.id}`)).status, 404, 'of another application')
    t.equal((await ann.delete(`${path}/${randomUUID()}`)).status, 404)
    t.equal((await ann.delete(`${path}/nonsense`)).status, 400)
    t.match((await ann.get(path)).body, [{ id: body.id }])
  })

  await t.test('of an application that is being deleted there are no volumes', async t => {
    const app = await application()
    const { body } = await ann.post(`${app}/volumes`, { name: 'data', mount_path: '/data' })
    t.equal((await ann.delete(app)).status, 200)
    t.equal((await ann.get(`${app}/volumes`)).status, 404)
    t.equal((await ann.post(`${app}/volumes`, { name: 'more', mount_path: '/more' })).status, 404)
    t.equal((await ann.delete(`${app}/volumes/${body.id}`)).status, 404)
  })

  await t.test('the same request twice with one key makes one volume', async t => {
    const path = await volumesOf()
    const headers = { 'idempotency-key': randomUUID() }
    const send = async () => await ann.post(path, { name: 'data', mount_path: '/data' }, { headers })
    const [first, second] = [await send(), await send()]
    t.same(second.body, first.body)
    t.equal(second.status, 201)
  })
})
