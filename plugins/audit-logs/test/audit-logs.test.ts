import { randomUUID } from 'node:crypto'
import { createTestKernel, type TestClient, type TestKernel, testClock, until } from 'busbar/sdk/testing'
import { test } from 'tap'

const clock = testClock('2026-03-01T10:00:00.000Z')
let k: TestKernel
let admin: TestClient
let projectId: string
const list = async (query = ''): Promise<any> => (await admin.get(`/api/audit-logs${query}`)).body
const actionsOf = async (query: string): Promise<string[]> =>
  (await list(query)).items.map(({ action }: { action: string }) => action)

/** Records as the kernel keeps them, of long ago unless said otherwise. */
async function insert(
  rows: number,
  { at = '2020-01-01T00:00:00Z', action = 'old_action', email = 'old@example.com', name = 'x' } = {}
): Promise<void> {
  await k.query(
    `
    insert into kernel.audit_log (id, action, resource_type, resource_id, user_email, user_username, details, ip_address, created_at)
    select gen_random_uuid(), $2, 'widget', $5, $4, 'old', '{"outcome":"success"}', '192.0.2.1', $3::timestamptz + n * interval '1 second'
    from generate_series(1, $1::int) as n`,
    [rows, action, at, email, name]
  )
}
const countOf = async (action: string): Promise<number> =>
  (
    await k.query<{ total: number }>(
      `select count(*)::int as total from kernel.audit_log where action = '${action}'`
    )
  )[0]?.total ?? -1
const clear = async (): Promise<void> => {
  await k.query('delete from kernel.audit_log')
}

test('a change shows who made it, from where, with which credential, and what it was made to', async t => {
  k = await createTestKernel({ clock })
  admin = await k.as.session()
  projectId = (await admin.post('/api/projects', { name: 'Shop', slug: 'shop' })).body.id as string
  await clock.advance(1000)
  const token = await k.as.token('write')
  await clock.advance(1000)
  t.equal((await token.put(`/api/projects/${projectId}`, { name: 'Store' })).status, 200)
  const { items, total } = await list()
  t.equal(total, 3)
  t.match(
    items,
    [
      {
        action: 'update_project',
        resource_type: 'project',
        resource_id: projectId,
        resource_name: 'Store',
        token_id: /^[0-9a-f-]{36}$/,
        token_name: /^write /,
        user_id: admin.userId
      },
      { action: 'token_created', resource_type: 'token', resource_name: '', token_id: null, token_name: '' },
      {
        action: 'create_project',
        user_id: admin.userId,
        user_email: 'admin@example.com',
        user_username: 'admin',
        details: { outcome: 'success' },
        ip_address: '127.0.0.1',
        created_at: '2026-03-01T10:00:00.000Z',
        resource_name: 'Store'
      }
    ],
    'newest first'
  )
})

test('a sign-in says who, and one that is refused is recorded as what it is', async t => {
  const anonymous = k.as.anonymous()
  await clock.advance(1000)
  t.equal(
    (await anonymous.post('/api/auth/login', { email: 'admin@example.com', password: 'wrong wrong' })).status,
    401
  )
  await clock.advance(1000)
  t.equal(
    (
      await anonymous.post('/api/auth/login', {
        email: 'admin@example.com',
        password: 'correct horse battery'
      })
    ).status,
    200
  )
  t.match((await list('?limit=2')).items, [
    {
      action: 'login',
      user_email: 'admin@example.com',
      resource_id: admin.userId,
      details: { outcome: 'success' }
    },
    { action: 'login_failed', user_email: 'admin@example.com', details: { outcome: 'failure', status: 401 } }
  ])
  t.notMatch(JSON.stringify(await list()), /wrong wrong|correct horse/)
})

test('every filter is an exact match, from is inclusive and to exclusive, and an empty one narrows nothing', async t => {
  t.same(await actionsOf('?action=update_project'), ['update_project'])
  t.same(await actionsOf('?action=update'), [])
  t.same(await actionsOf(`?resource_type=project&resource_id=${projectId}`), [
    'update_project',
    'create_project'
  ])
  t.same(await actionsOf(`?user_id=${admin.userId ?? ''}&resource_type=token`), ['token_created'])
  t.same(await actionsOf(`?user_id=${randomUUID()}`), [])
  t.same(await actionsOf('?from=2026-03-01T10:00:00Z&to=2026-03-01T10:00:01Z'), ['create_project'])
  t.same(await actionsOf('?from=2026-03-01T11:00:00%2B01:00&to=2026-03-01T10:00:01Z'), ['create_project'])
  t.same(await actionsOf('?action=&user_id=&from=&to=&resource_id=&limit=1'), ['login'])
})

test('the total counts all matches, whatever the page', async t => {
  t.match(await list('?limit=1&offset=1'), { items: [{ action: 'login_failed' }], total: 5 })
  t.match(await list('?limit=1&resource_type=project'), { items: [{ action: 'update_project' }], total: 2 })
  t.match(await list('?offset=100'), { items: [], total: 5 })
  t.equal(
    (await list('?limit=0&offset=-1')).items.length,
    5,
    'a bad limit and a bad offset fall back to the default'
  )
})

test('a malformed user or time is refused by its name', async t => {
  for (const path of ['/api/audit-logs', '/api/audit-logs/export']) {
    for (const bad of ['nobody', '%00', 'ABCDEF12-0000-0000-0000-000000000000'])
      t.match(await admin.get(`${path}?user_id=${bad}`), {
        status: 400,
        body: { error: bad === '%00' ? /NUL/ : /user_id/ }
      })
    t.match(await admin.get(`${path}?from=yesterday`), {
      status: 400,
      body: { code: 'E_AUDIT_TIME', error: /^from must be/ }
    })
    t.match(await admin.get(`${path}?to=2026-13-45`), { status: 400, body: { error: /^to must be/ } })
  }
})

test('the actions are those that occur, sorted and each once', async t => {
  await insert(3, { action: 'zebra' })
  await insert(1, { action: 'Aardvark' })
  t.same((await admin.get('/api/audit-logs/actions')).body, [
    'Aardvark',
    'create_project',
    'login',
    'login_failed',
    'token_created',
    'update_project',
    'zebra'
  ])
  await clear()
  t.same((await admin.get('/api/audit-logs/actions')).body, [], 'none in an empty log')
})

test('the export is CSV, newest first, in which no spreadsheet finds a formula', async t => {
  for (const [n, email] of [
    '=1+1',
    '+1',
    '-1',
    '@sum',
    '\t=1',
    'a "quoted", one',
    'plain@example.com'
  ].entries()) {
    await insert(1, {
      at: `2020-01-0${n + 1}T00:00:00Z`,
      email,
      action: 'import',
      name: n === 6 ? 'line\nbreak' : ''
    })
  }
  const { status, headers, body } = await admin.get('/api/audit-logs/export?action=import')
  t.equal(status, 200)
  t.match(headers, {
    'content-type': 'text/csv; charset=utf-8',
    'content-disposition': /^attachment; filename="audit-log-2026-03-01\.csv"$/,
    'x-truncated': undefined
  })
  t.same((body as string).split('\r\n'), [
    'time,action,actor,resource_type,resource,ip',
    '2020-01-07T00:00:01.000Z,import,plain@example.com,widget,"line\nbreak",192.0.2.1',
    '2020-01-06T00:00:01.000Z,import,"a ""quoted"", one",widget,,192.0.2.1',
    "2020-01-05T00:00:01.000Z,import,'\t=1,widget,,192.0.2.1",
    "2020-01-04T00:00:01.000Z,import,'@sum,widget,,192.0.2.1",
    "2020-01-03T00:00:01.000Z,import,'-1,widget,,192.0.2.1",
    "2020-01-02T00:00:01.000Z,import,'+1,widget,,192.0.2.1",
    "2020-01-01T00:00:01.000Z,import,'=1+1,widget,,192.0.2.1",
    ''
  ])
  t.same(
    (await admin.get('/api/audit-logs/export?action=none')).body,
    'time,action,actor,resource_type,resource,ip\r\n'
  )
})

test('what is not known of a record is an empty cell of the export', async t => {
  await k.query(`
    insert into kernel.audit_log (id, action, resource_type, details, created_at)
    values (gen_random_uuid(), 'unsigned', 'widget', '{}', '2020-02-01T00:00:00Z')`)
  t.equal(
    (await admin.get('/api/audit-logs/export?action=unsigned')).body.split('\r\n')[1],
    '2020-02-01T00:00:00.000Z,unsigned,,widget,,'
  )
})

test('an export ends at 10 000 records and says so', async t => {
  await clear()
  await insert(10_000)
  const whole = await admin.get('/api/audit-logs/export')
  t.equal(whole.headers['x-truncated'], undefined)
  t.equal((whole.body as string).split('\r\n').length, 10_002, 'a header, 10 000 lines and the end')
  await insert(1, { at: '2021-01-01T00:00:00Z', action: 'newest' })
  const cut = await admin.get('/api/audit-logs/export')
  t.equal(cut.headers['x-truncated'], 'true')
  const lines = (cut.body as string).split('\r\n')
  t.equal(lines.length, 10_002)
  t.match(lines[1], /newest/, 'what is left out is the oldest')
  t.equal(
    new Set(lines.map(line => line.slice(0, 24))).size,
    10_002,
    'every record once: each has a second of its own'
  )
})

test('a token that is pinned to projects cannot use it at all', async t => {
  const pinned = await k.as.token('read', { pins: [projectId] })
  for (const path of ['', '/actions', '/export', `?resource_id=${projectId}`]) {
    t.match(await pinned.get(`/api/audit-logs${path}`), { status: 403, body: { code: 'E_PROJECT_PINNED' } })
  }
  t.equal((await (await k.as.token('read')).get('/api/audit-logs')).status, 200)
  t.match(await (await k.as.session('member')).get('/api/audit-logs'), {
    status: 403,
    body: { code: 'E_FORBIDDEN' }
  })
})

test('records are kept for ever, unless an operator says for how many days', async t => {
  await clear()
  await insert(6_000, { action: 'ancient' })
  await insert(1, { at: '2026-01-30T12:00:00Z', action: 'recent' })
  t.match(await admin.put('/api/plugins/audit-logs/config', { retention_days: -1 }), {
    status: 400,
    body: { code: 'E_PLUGIN_CONFIG' }
  })
  t.equal((await admin.put('/api/plugins/audit-logs/config', { retention_days: 0 })).status, 200)
  t.equal(await countOf('ancient'), 6_000)
  t.equal((await admin.put('/api/plugins/audit-logs/config', { retention_days: 30 })).status, 200)
  await until(async () => (await countOf('ancient')) === 0, 'the old records are gone')
  t.equal(await countOf('recent'), 1)
})

test('the platform stops', async () => {
  await k.close()
})
