import { randomUUID } from 'node:crypto'
import { createTestKernel } from 'busbar/sdk/testing'
import { test } from 'tap'

test('file mounts over HTTP', async t => {
  const k = await createTestKernel({ environment: { DOCKER_HOST: 'unix:///nowhere.sock' } })
  t.teardown(() => k.close())
  const ann = await k.as.session('ann')
  const writer = await k.as.token('write', { user: 'ann' })
  const reader = await k.as.token('read', { user: 'ann' })
  const { body: project } = await ann.post('/api/projects', { name: 'x', slug: 'x' })
  let made = 0
  const filesOf = async (): Promise<string> => {
    const { body } = await ann.post(`/api/projects/${project.id}/applications`, {
      name: `web-${made++}`,
      type: 'image',
      build_type: 'image',
      source_image: 'busybox:lab'
    })
    return `/api/projects/${project.id}/applications/${body.id as string}/file-mounts`
  }

  await t.test('a session sees what is not secret, a token nothing, and reveal everything', async t => {
    const path = await filesOf()
    const open = await ann.post(path, { mount_path: '/app/open', content: 'plain text' })
    t.match(open, { status: 201 })
    t.strictSame(
      { ...open.body, id: '', created_at: '' },
      {
        id: '',
        mount_path: '/app/open',
        content: 'plain text',
        content_masked: false,
        is_secret: false,
        file_mode: '0644',
        created_at: ''
      }
    )
    const secret = await ann.post(path, {
      mount_path: '/app/key',
      content: 'hunter2',
      is_secret: true,
      file_mode: '600'
    })
    t.match(secret.body, { content_masked: true, is_secret: true, file_mode: '0600' })
    t.notOk('content' in secret.body)
    const seen = await ann.get(path)
    t.equal(seen.headers['x-total-count'], '2')
    t.match(seen.body, [
      { mount_path: '/app/key', content_masked: true },
      { mount_path: '/app/open', content: 'plain text', content_masked: false }
    ])
    t.notOk('content' in seen.body[0])
    for (const token of [reader, writer]) {
      const rows = (await token.get(path)).body
      t.match(rows, [{ content_masked: true }, { content_masked: true, is_secret: false }])
      t.notMatch(JSON.stringify(rows), /plain text|hunter2/)
      t.match(await token.get(`${path}/${open.body.id}/reveal`), {
        status: 403,
        body: { error: 'this action requires a session, not a personal access token' }
      })
    }
    const byToken = await writer.post(path, { mount_path: '/app/third', content: 'seen by nobody' })
    t.match(byToken, { status: 201, body: { content_masked: true } })
    t.notOk('content' in byToken.body)
    const changed = await writer.put(`${path}/${byToken.body.id}`, { content: 'as before' })
    t.match(changed, { status: 200, body: { content_masked: true } })
    t.notOk('content' in changed.body)
    for (const [id, content] of [
      [open.body.id, 'plain text'],
      [secret.body.id, 'hunter2'],
      [byToken.body.id, 'as before']
    ])
      t.strictSame((await ann.get(`${path}/${id}/reveal`)).body, { content })
    const stored = await k.query<{ content: string }>('select content from file_mounts.file_mount')
    t.notMatch(JSON.stringify(stored), /plain text|hunter2|as before/, 'all of it is encrypted')
  })

  await t.test(
    'a change keeps what it leaves out, and no secret becomes readable without being sent',
    async t => {
      const path = await filesOf()
      const { body } = await ann.post(path, { mount_path: '/app/key', content: 'hunter2', is_secret: true })
      const one = `${path}/${body.id}`
      const content = async (): Promise<string> => (await ann.get(`${one}/reveal`)).body.content
      for (const change of [
        {},
        { content: null },
        { file_mode: '0640' },
        { is_secret: true },
        { mount_path: '/x/y' }
      ])
        t.match(
          await ann.put(one, change),
          { status: 200, body: { is_secret: true, content_masked: true, mount_path: '/app/key' } },
          JSON.stringify(change)
        )
      t.equal(await content(), 'hunter2')
      t.match((await ann.get(path)).body, [{ file_mode: '0640' }])
      t.match(await ann.put(one, { is_secret: false }), {
        status: 400,
        body: { code: 'E_FILE_MOUNT_STAYS_SECRET', field: 'is_secret' }
      })
      t.match(await ann.put(one, { is_secret: false, content: 'open' }), {
        status: 200,
        body: { is_secret: false, content: 'open', content_masked: false, file_mode: '0640' }
      })
      t.match(await ann.put(one, { content: '' }), { status: 200, body: { content: '' } })
      t.match(await ann.put(one, { is_secret: true }), { status: 200, body: { content_masked: true } })
      t.equal((await ann.put(`${path}/${randomUUID()}`, { content: 'x' })).status, 404)
    }
  )

  await t.test('modes that are none, and more than rights, are refused', async t => {
    const path = await filesOf()
    for (const file_mode of [
      '',
      '8',
      '999',
      '0888',
      '1777',
      '4755',
      '07777',
      '-644',
      '0x1a4',
      '644 ',
      'rw-r--r--',
      420
    ])
      t.match(
        await ann.post(path, { mount_path: '/app/x', content: '', file_mode }),
        { status: 400, body: { field: 'file_mode' } },
        JSON.stringify(file_mode)
      )
    for (const [at, file_mode] of ['0777', '777', '0o755', '000'].entries())
      t.match(
        (await ann.post(path, { mount_path: `/app/${at}`, content: '', file_mode })).body,
        { file_mode: `0${file_mode.slice(-3)}` },
        file_mode
      )
  })

  await t.test('paths that are no place for a file are refused', async t => {
    const path = await filesOf()
    const refused = [
      ...[
        '/',
        '/file',
        '/etc',
        '/usr',
        '/tmp',
        'app/x',
        '/app/',
        '/app//x',
        '/app/../etc/passwd',
        '/./app/x'
      ],
      ...[
        '/proc/self/x',
        '/sys/x',
        '/dev/null',
        '/etc/hosts',
        '/etc/resolv.conf',
        '/etc/hostname',
        '/sbin/docker-init'
      ],
      ...[
        '/app/x y',
        '/app/x:ro',
        '/app/x\0',
        '/app/x\n',
        '/äpp/x',
        `/app/${'x'.repeat(256)}`,
        `/app/${'x/'.repeat(300)}y`
      ]
    ]
    for (const mount_path of [...refused, 1, null])
      t.match(
        await ann.post(path, { mount_path, content: 'x' }),
        { status: 400, body: { field: 'mount_path' } },
        JSON.stringify(mount_path)
      )
    for (const mount_path of [
      '/etc/passwd',
      '/app/.env',
      '/usr/share/x/y.conf',
      '/run/secrets/key',
      '/tmp/x'
    ])
      t.equal((await ann.post(path, { mount_path, content: 'x' })).status, 201, mount_path)
    t.match(await ann.post(path, { mount_path: '/app/.env', content: 'x' }), {
      status: 409,
      body: { code: 'E_MOUNT_PATH_TAKEN' }
    })
    t.match(await ann.post(path, { mount_path: '/app/.env/below', content: 'x' }), { status: 409 })
    t.equal((await ann.post(path, { mount_path: '/srv/a/b', content: 'x' })).status, 201)
    t.match(await ann.post(path, { mount_path: '/srv/a', content: 'x' }), { status: 409 }, 'above a file')
  })

  await t.test('contents are texts of 1 MiB at most, and 4 MiB together', async t => {
    const path = await filesOf()
    const mebi = 2 ** 20
    t.match(await ann.post(path, { mount_path: '/app/x', content: `${'ä'.repeat(mebi / 2)}x` }), {
      status: 400,
      body: { code: 'E_FILE_MOUNT_TOO_LONG', field: 'content' }
    })
    t.match(await ann.post(path, { mount_path: '/app/x', content: 'x'.repeat(mebi + 1) }), {
      status: 400,
      body: { field: 'content' }
    })
    for (const content of [undefined, null, 5, ['x']])
      t.match(await ann.post(path, { mount_path: '/app/x', content }), {
        status: 400,
        body: { field: 'content' }
      })
    for (const content of ['half \ud800', 'NUL \0'])
      t.match(
        await ann.post(path, { mount_path: '/app/x', content }),
        { status: 400, body: { field: 'content' } },
        'what is no text'
      )
    const odd = 'a bell \u0007, a line\r\nand 💚'
    const { body } = await ann.post(path, { mount_path: '/app/odd', content: odd })
    t.equal((await ann.get(`${path}/${body.id}/reveal`)).body.content, odd)
    for (const name of ['a', 'b', 'c'])
      t.equal((await ann.post(path, { mount_path: `/app/${name}`, content: 'x'.repeat(mebi) })).status, 201)
    t.match(await ann.post(path, { mount_path: '/app/d', content: 'x'.repeat(mebi) }), {
      status: 409,
      body: { code: 'E_FILE_MOUNT_TOO_MUCH' }
    })
    t.match(await ann.put(`${path}/${body.id}`, { content: 'x'.repeat(mebi) }), {
      status: 200
    })
    t.match(await ann.post(path, { mount_path: '/app/d', content: 'x' }), { status: 409 })
    t.equal((await ann.put(`${path}/${body.id}`, { content: 'x' })).status, 200, 'what shrinks may')
    t.equal((await ann.post(path, { mount_path: '/app/d', content: 'x' })).status, 201)
  })

  await t.test('nobody else sees a file mount, and no path leads to one of another application', async t => {
    const path = await filesOf()
    const { body } = await ann.post(path, { mount_path: '/app/key', content: 'hunter2', is_secret: true })
    const bob = await k.as.session('bob')
    t.equal((await bob.get(path)).status, 404)
    t.equal((await bob.get(`${path}/${body.id}/reveal`)).status, 404)
    t.equal((await bob.put(`${path}/${body.id}`, { content: 'x' })).status, 404)
    t.equal((await bob.delete(`${path}/${body.id}`)).status, 404)
    t.equal((await reader.delete(`${path}/${body.id}`)).status, 403)
    t.equal((await k.as.anonymous().get(path)).status, 401)
    const other = await filesOf()
    t.equal((await ann.get(`${other}/${body.id}/reveal`)).status, 404)
    t.equal((await ann.delete(`${other}/${body.id}`)).status, 404)
    t.strictSame((await writer.delete(`${path}/${body.id}`)).body, { status: 'deleted' })
    t.equal((await writer.delete(`${path}/${body.id}`)).status, 404)
    t.match((await ann.get(path)).body, { length: 0 })
  })

  await t.test('a content whose key is gone is told apart, and can be set again', async t => {
    const path = await filesOf()
    const { body } = await ann.post(path, { mount_path: '/app/key', content: 'x' })
    await k.query("update file_mounts.file_mount set content = 'b1.none.x.y' where id = $1", [body.id])
    t.match((await ann.get(path)).body, [{ content_masked: true, is_secret: false }])
    t.match(await ann.get(`${path}/${body.id}/reveal`), {
      status: 500,
      body: { code: 'E_FILE_MOUNT_UNREADABLE' }
    })
    t.match(await ann.put(`${path}/${body.id}`, { content: 'anew' }), {
      status: 200,
      body: { content: 'anew' }
    })
  })

  await t.test('file mounts go with their application, and are not shown from then on', async t => {
    const path = await filesOf()
    const { body } = await ann.post(path, { mount_path: '/app/key', content: 'x' })
    t.equal((await ann.delete(path.replace('/file-mounts', ''))).status, 200)
    t.equal((await ann.get(path)).status, 404)
    t.equal((await ann.get(`${path}/${body.id}/reveal`)).status, 404)
    t.equal((await ann.put(`${path}/${body.id}`, { content: 'y' })).status, 404)
    t.equal((await ann.post(path, { mount_path: '/app/other', content: 'y' })).status, 404)
  })
})
