import { randomUUID } from 'node:crypto'
import { createTestKernel } from 'busbar/sdk/testing'
import { test } from 'tap'

/** Nothing is made on an engine: what is refused, and what is chosen. */
test('what a server would not take is not asked of it', async t => {
  const k = await createTestKernel()
  t.teardown(() => k.close())
  const ann = await k.as.session('ann')
  const slug = `t-${randomUUID().slice(0, 8)}`
  const { body: project } = await ann.post('/api/projects', { name: 'x', slug })
  const all = `/api/projects/${project.id}/databases`
  await k.disable('runtime-docker', { force: true }).catch(() => undefined)
  const refusal = async (body: object): Promise<string> => {
    const { status, body: answer } = await ann.post(all, { name: 'x', ...body })
    t.equal(status, 400, JSON.stringify(body))
    return answer.error as string
  }
  /** The name of the database that is chosen for one that is called so, as its credentials show it. */
  const chosenFor = async (type: string, name: string): Promise<string> => {
    const made = await ann.post(all, { type, name })
    const shown = await ann.get(`${all}/${made.body.id}/credentials/reveal`)
    t.equal(shown.status, 200, `${type} ${name}`)
    const { credentials, connection_string: url } = shown.body
    t.equal(decodeURIComponent(new URL(url).pathname), `/${credentials.database}`)
    return credentials.database
  }

  await t.test('a name is cut between characters, and where the server would cut it', async t => {
    t.equal(await chosenFor('postgres', '🚀'.repeat(50)), '🚀'.repeat(15), '60 of 63 bytes')
    t.equal(await chosenFor('postgres', '商'.repeat(30)), '商'.repeat(21), '63 bytes')
    t.equal(await chosenFor('postgres', 'a'.repeat(100)), 'a'.repeat(63))
    t.equal(await chosenFor('mariadb', '商'.repeat(64)), '商'.repeat(51), '255 bytes as the name of a folder')
    t.match(
      await refusal({ type: 'postgres', credentials: { database_name: '商'.repeat(22) } }),
      /credentials.database_name must have at most 63 bytes/
    )
    t.match(
      await refusal({ type: 'mysql', credentials: { database_name: '商'.repeat(52) } }),
      /credentials.database_name must have fewer characters/
    )
  })

  await t.test('MySQL and MariaDB get no name with characters that they have none for', async t => {
    t.equal(await chosenFor('mariadb', '🚀 shop'), 'shop')
    t.equal(await chosenFor('mysql', '🚀'), 'app')
    t.match(await refusal({ type: 'mariadb', credentials: { database_name: '🚀' } }), /beyond U\+FFFF/)
  })

  await t.test('names that servers keep for themselves are refused, and never chosen', async t => {
    for (const database_name of ['template0', 'template1'])
      t.match(await refusal({ type: 'postgres', credentials: { database_name } }), /template0 or template1/)
    for (const user of ['pg_monitor', 'public', 'none'])
      t.match(await refusal({ type: 'postgres', credentials: { user } }), /public or none/)
    for (const type of ['mysql', 'mariadb']) {
      for (const database_name of ['mysql', 'SYS', 'information_schema', 'performance_schema'])
        t.match(await refusal({ type, credentials: { database_name } }), /database_name must not be one of/)
      for (const user of ['mysql', 'healthcheck'])
        t.match(await refusal({ type, credentials: { user } }), /credentials.user must not be one of/)
    }
    t.equal(await chosenFor('postgres', 'template0'), 'app')
    t.equal(await chosenFor('mysql', 'MySQL'), 'app')
  })

  await t.test('the image of MySQL is given no password that would end its quotes', async t => {
    for (const text of ["a'b", 'a"b', 'a\\b'])
      for (const field of ['password', 'root_password']) {
        const credentials = { [field]: text }
        t.match(await refusal({ type: 'mysql', credentials }), new RegExp(`${field} must have no quotes`))
        t.equal((await ann.post(all, { name: 'x', type: 'mariadb', credentials })).status, 202)
      }
  })

  await t.test('what is no image is refused at once', async t => {
    const other = { type: 'other', container_port: 80 }
    for (const image of ['a b', '--help', '../x', 'UPPER', 'http://127.0.0.1/x', 'x@sha256:1'])
      t.match(await refusal({ ...other, image }), /image must be an image reference/, image)
    t.equal((await ann.post(all, { name: 'x', ...other, image: ' registry.example:5000/a:1 ' })).status, 202)
  })

  await t.test('its data is mounted only where volumes may be', async t => {
    const other = { type: 'other', container_port: 80, image: 'a' }
    const paths = ['/data:ro', '/a b', '/proc ', '/tmp', '/run', '/etc/hosts', '/sbin/docker-init']
    for (const data_dir of [...paths, `/${'b'.repeat(256)}`, '/é'])
      t.match(await refusal({ ...other, data_dir }), /^data_dir /, data_dir)
    t.equal((await ann.post(all, { name: 'x', ...other, data_dir: '/var/lib/store' })).status, 202)
  })
})
