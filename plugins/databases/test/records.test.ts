import { randomUUID } from 'node:crypto'
import { createTestKernel } from 'busbar/sdk/testing'
import { test } from 'tap'

/** Nothing is made on an engine: what is refused, and what is answered at once. */
test('databases as records', async t => {
  const k = await createTestKernel({ environment: { BUSBAR_PUBLIC_IP: '203.0.113.7' } })
  t.teardown(() => k.close())
  const ann = await k.as.session('ann')
  const { body: project } = await ann.post('/api/projects', {
    name: 'x',
    slug: `t-${randomUUID().slice(0, 8)}`
  })
  const all = `/api/projects/${project.id}/databases`
  await k.disable('runtime-docker', { force: true }).catch(() => undefined)

  await t.test('what does not fit its type is refused, with the field', async t => {
    const refused = async (body: object) => {
      const { status, body: answer } = await ann.post(all, { name: 'x', ...body })
      t.equal(status, 400, JSON.stringify(body))
      return answer.error as string
    }
    t.match(
      await refused({ type: 'oracle' }),
      /type oracle is not known; there are mariadb, mongo, mysql, other/
    )
    t.match(await refused({ type: 'postgres', image: 'postgres:16' }), /image is for the type other/)
    t.match(await refused({ type: 'postgres', container_port: 1 }), /container_port is for the type other/)
    t.match(await refused({ type: 'postgres', backup_mode: 'command' }), /backup_mode is for the type other/)
    t.match(await refused({ type: 'mysql', credentials: { user: 'root' } }), /must not be root/)
    t.match(
      await refused({ type: 'postgres', credentials: { user: '-x' } }),
      /credentials.user must be letters/
    )
    t.match(
      await refused({ type: 'postgres', credentials: { database_name: 'a"b' } }),
      /credentials.database_name must have/
    )
    t.match(await refused({ type: 'redis', credentials: { password: 'ä' } }), /credentials.password must be/)
    t.match(await refused({ type: 'other' }), /image must be given/)
    t.match(await refused({ type: 'other', image: 'a' }), /container_port must be given/)
    const other = { type: 'other', image: 'busybox:lab', container_port: 80 }
    for (const data_dir of ['/', '/etc', '/proc/x', 'data', '/a/../b', '/a//b'])
      t.match(await refused({ ...other, data_dir }), /data_dir must /, data_dir)
    t.match(await refused({ ...other, backup_mode: 'command' }), /backup_command must be given/)
    t.match(
      await refused({ ...other, backup_mode: 'command', backup_command: 'x' }),
      /restore_command must be given/
    )
    t.match(await refused({ ...other, restore_command: 'x' }), /restore_command goes with/)
    t.match(await refused({ ...other, env: { 'a-b': '' } }), /env must have names/)
    t.match(await refused({ ...other, credentials: { user: 'a' } }), /credentials are not for the type other/)
    t.equal((await ann.post(all, { type: 'postgres' })).status, 400)
    t.equal((await ann.post(all, { name: ' ', type: 'postgres' })).status, 400)
    t.same((await ann.get(all)).body, [], 'nothing of it is kept')
  })

  await t.test('one that is made is answered at once, and is busy until it runs', async t => {
    const made = await ann.post(all, { name: 'Shop & more', type: 'mysql', slug: 'Main!' })
    t.match(made, {
      status: 202,
      body: {
        status: 'creating',
        version: '8',
        image: 'mysql:8',
        slug: new RegExp(`^${project.slug}-main-[0-9a-f]{8}$`),
        internal_port: 3306,
        image_digest: null
      }
    })
    const path = `${all}/${made.body.id}`
    const { body } = await ann.get(`${path}/credentials/reveal`)
    t.match(body.credentials, {
      root_password: /^[0-9a-f]{32}$/,
      password: /^[0-9a-f]{32}$/,
      database: 'Shop & more'
    })
    t.match(body.credentials.user, /^[a-z_][a-z0-9_]{0,31}$/)
    t.equal(new URL(body.connection_string).pathname, '/Shop%20%26%20more')
    for (const action of ['start', 'stop', 'restart', 'reload'])
      t.match(
        await ann.post(`${path}/${action}`),
        { status: 409, body: { code: 'E_DATABASE_BUSY_NOW' } },
        action
      )
    t.match(await ann.post(`${path}/upgrade`, { target_version: '9' }), {
      status: 409,
      body: { code: 'E_DATABASE_BUSY_NOW' }
    })
    t.match(await ann.post(`${path}/upgrade`, { target_version: '5.7' }), {
      status: 400,
      body: { code: 'E_DATABASE_OLDER_VERSION' }
    })
    t.match(await ann.post(`${path}/upgrade`, {}), { status: 400, body: { code: 'E_DATABASE_INVALID' } })
    const redis = await ann.post(all, { name: 'x', type: 'redis' })
    t.match(await ann.post(`${all}/${redis.body.id}/upgrade`, { target_version: '8' }), {
      status: 400,
      body: { code: 'E_DATABASE_NOT_UPGRADABLE' }
    })
  })

  await t.test(
    'one that does not run is not upgraded, and one that cannot be read is not begun with',
    async t => {
      const { body } = await ann.post(all, { name: 'old', type: 'postgres' })
      const path = `${all}/${body.id}`
      const upgrade = async () => await ann.post(`${path}/upgrade`, { target_version: '17' })
      for (const status of ['stopped', 'failed']) {
        await k.query(
          `update databases.database set task = null, status = '${status}' where id = '${body.id}'`
        )
        t.match(await upgrade(), { status: 409, body: { code: 'E_DATABASE_NOT_RUNNING' } }, status)
      }
      for (const action of ['start', 'stop', 'restart'])
        t.match(await ann.post(`${path}/${action}`), { status: 503, body: { code: 'E_PLUGIN_OFF' } }, action)
      await k.query(
        `update databases.database set status = 'running', credentials = 'b1.none.x.y' where id = '${body.id}'`
      )
      t.match(await upgrade(), { status: 500, body: { code: 'E_DATABASE_UNREADABLE' } })
      t.match((await ann.get(path)).body, { status: 'running' }, 'it is not held for what cannot be done')
      t.same((await ann.get(`${path}/upgrades`)).body, [])
    }
  )

  await t.test('applications that are attached to one are changed when it is deleted', async t => {
    const { body } = await ann.post(all, { name: 'gone', type: 'redis' })
    const applications = `/api/projects/${project.id}/applications`
    const image = { type: 'image', build_type: 'image', source_image: 'busybox:lab' }
    const changed = async (id: string) => (await ann.get(`${applications}/${id}`)).body.config_changed_at
    const [attached, other] = await Promise.all(
      ['web', 'other'].map(async name => (await ann.post(applications, { name, ...image })).body.id as string)
    )
    await ann.put(`${all}/${body.id}/attachments/${attached}`, { variables: { DATABASE_URL: 'url' } })
    await k.query('update applications.application set config_changed_at = null')
    t.equal((await ann.delete(`${all}/${body.id}`)).status, 200)
    t.ok(await changed(attached ?? ''))
    t.equal(await changed(other ?? ''), null)
  })

  await t.test('what is empty, as clients of other systems send it, is as if it was not given', async t => {
    const empty = {
      slug: '',
      version: '',
      image: '',
      data_dir: '',
      container_port: 0,
      backup_mode: '',
      backup_command: '',
      restore_command: '',
      env: {}
    }
    const made = await ann.post(all, {
      ...empty,
      name: 'empty',
      type: 'postgres',
      credentials: { user: '', password: '', database_name: '', root_password: '' }
    })
    t.match(made, { status: 202, body: { version: '16', image: 'postgres:16', backup_mode: 'none' } })
    t.match((await ann.get(`${all}/${made.body.id}/credentials/reveal`)).body.credentials, {
      user: 'postgres',
      password: /^[0-9a-f]{32}$/,
      database: 'empty'
    })
    const other = await ann.post(all, { ...empty, name: 'o', type: 'other', image: 'busybox:lab' })
    t.match(other, { status: 400, body: { error: /container_port must be given/ } })
  })

  await t.test('a tunnel leads to the address of the machine, unless another is set', async t => {
    const { body } = await ann.post(all, { name: 'far', type: 'redis' })
    await k.query(
      `update databases.database set is_external = true, external_port = 40404 where id = '${body.id}'`
    )
    const reached = { enabled: true, host_port: 40_404, ssh_host: '203.0.113.7', ssh_user: '' }
    t.match((await ann.get(`${all}/${body.id}`)).body, { host_port: 40_404, external_access: reached })
    const listed = (await ann.get(all)).body.find((one: { id: string }) => one.id === body.id)
    t.same(listed.external_access, reached)
  })

  await t.test('a database of another project is in no path of this one', async t => {
    const { body: other } = await ann.post('/api/projects', {
      name: 'y',
      slug: `t-${randomUUID().slice(0, 8)}`
    })
    const { body: foreign } = await ann.post(`/api/projects/${other.id}/databases`, {
      name: 'x',
      type: 'redis'
    })
    for (const rest of ['', '/credentials/reveal', '/logs/history', '/volume', '/attachments', '/upgrades'])
      t.match(await ann.get(`${all}/${foreign.id}${rest}`), { status: 404 }, rest)
  })
})
