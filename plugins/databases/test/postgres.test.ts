import { randomBytes } from 'node:crypto'
import { connect } from 'node:net'
import { containerRuntime } from 'busbar/api/containers'
import { environmentVariables } from 'busbar/api/environment'
import { until } from 'busbar/sdk/testing'
import Docker from 'dockerode'
import { test } from 'tap'
import { requireDatabaseImages } from '../../../lab/database-images.js'
import { containersOf } from '../../deployments/test/deploy-lab.js'
import { volumeApplication } from '../../volumes/test/volume-lab.js'
import { containerOf, createDatabase, runIn, startLab, untilRunning, untilStatus } from './lab.js'

const version = '15'

test('a PostgreSQL database', async t => {
  if (!(await requireDatabaseImages(t))) return
  const lab = await startLab(t, { environment: { SERVER_SSH_HOST: 'host.example', SERVER_SSH_USER: 'ops' } })
  const { k, ann, all, projectId } = lab
  const socket = await k.socket(ann)
  const password = `p@ss/w:rd %${randomBytes(4).toString('hex')}`
  const made = await createDatabase(lab, {
    name: 'Shop data',
    type: 'postgres',
    version,
    credentials: { password, user: 'shop' }
  })
  const { id, path, slug } = made
  socket.subscribe(`database-status:${id}`)
  const sql = async (text: string, { user = 'shop', secret = password, database = 'Shop data' } = {}) =>
    await runIn(k, id, ['psql', '-h', '127.0.0.1', '-U', user, '-d', database, '-A', '-t', '-c', text], {
      PGPASSWORD: secret
    })

  await t.test('runs with the credentials that were given, and is described without them', async t => {
    t.equal(await sql('select 40 + 2'), '42')
    const { body } = await ann.get(path)
    t.match(body, {
      status: 'running',
      type: 'postgres',
      version,
      image: 'postgres:15',
      image_digest: /^sha256:[0-9a-f]{64}$/,
      internal_host: slug,
      internal_port: 5432,
      container_port: null,
      credentials_encrypted: 'sealed',
      external_access: null,
      container_missing: false,
      backup_mode: 'none'
    })
    t.notOk(JSON.stringify(body).includes(password))
    t.match((await ann.get(all)).body, [{ id, slug, status: 'running' }])
    const [row] = await k.query<{ credentials: string }>('select credentials from databases.database')
    t.notOk(row?.credentials.includes(password))
    const inspected = await k.service(containerRuntime).inspect(await containerOf(k, id))
    t.match(inspected, { name: slug, owner: { databaseId: id, projectId } })
  })

  await t.test(
    'its container is one of the platform, is started again, and has no port of the machine',
    async t => {
      const { Config, HostConfig, Mounts, NetworkSettings } = await new Docker()
        .getContainer(await containerOf(k, id))
        .inspect()
      t.match(Config.Labels, { 'managed-by': 'busbar', 'database-id': id })
      t.match(HostConfig.RestartPolicy, { Name: 'unless-stopped' })
      t.ok(HostConfig.SecurityOpt?.includes('no-new-privileges:true'), `${HostConfig.SecurityOpt}`)
      t.same(HostConfig.PortBindings ?? {}, {})
      t.match(
        Mounts.map(({ Name, Destination }) => [Name, Destination]),
        [[`${slug}-vol`, '/var/lib/postgresql/data']]
      )
      const { body: project } = await ann.get(`/api/projects/${projectId}`)
      t.same(Object.keys(NetworkSettings.Networks), [`busbar-${project.slug}`])
    }
  )

  await t.test('what it writes comes by its channel', async t => {
    const logs = await k.socket(ann)
    logs.subscribe(`container-logs:${id}`)
    await until(async () => {
      await sql('select from no_such_table').catch(() => {})
      return logs.frames.some(({ event, data }) => event === 'log' && /no_such_table/.test(data.message))
    }, 'a line of its log')
    const frame = logs.frames.find(({ data }) => /no_such_table.* does not exist/.test(data.message))
    t.match(frame?.data, {
      level: 'error',
      stream: 'stderr',
      deployment_id: '',
      container_id: await containerOf(k, id),
      recorded_at: /^\d{4}-/
    })
  })

  await t.test(
    'its credentials are shown to sessions, in a URL that holds them whatever they are',
    async t => {
      const { status, body } = await ann.get(`${path}/credentials/reveal`)
      t.equal(status, 200)
      t.same(body.credentials, { user: 'shop', password, database: 'Shop data' })
      const url = new URL(body.connection_string)
      t.equal(url.protocol, 'postgresql:')
      t.equal(decodeURIComponent(url.password), password)
      t.equal(decodeURIComponent(url.pathname), '/Shop data')
      t.equal(url.host, `${slug}:5432`)
      const token = await k.as.token('write')
      t.match(await token.get(`${path}/credentials/reveal`), {
        status: 403,
        body: { code: 'E_SESSION_REQUIRED' }
      })
    }
  )

  await t.test('stops, starts and restarts with its data, and says so on its channel', async t => {
    await sql('create table kept (n integer); insert into kept select generate_series(1, 100)')
    t.match(await ann.post(`${path}/stop`), { status: 200, body: { status: 'stopped' } })
    await socket.next(({ event, data }) => event === 'status' && data.status === 'stopped')
    t.match(await ann.post(`${path}/external-access`, { enabled: true }), {
      status: 409,
      body: { code: 'E_DATABASE_NOT_RUNNING' }
    })
    t.match(await ann.post(`${path}/start`), { status: 200, body: { status: 'running' } })
    await socket.next(({ data }) => data.status === 'running' && data.database_id === id)
    await until(async () => (await sql('select count(*) from kept').catch(() => '')) === '100', 'its data')
    t.match(await ann.post(`${path}/restart`), { status: 200, body: { status: 'running' } })
    await until(async () => (await sql('select count(*) from kept').catch(() => '')) === '100', 'its data')
  })

  await t.test('what happens to its container is followed', async t => {
    const runtime = k.service(containerRuntime)
    const container = await containerOf(k, id)
    await runtime.exec(container, ['sh', '-c', 'kill -INT 1'], {
      onLine: () => {},
      signal: new AbortController().signal
    })
    await runtime.stop(container, 20)
    await untilStatus(ann, path, 'stopped')
    await runtime.remove(container)
    t.match((await ann.get(path)).body, { status: 'stopped', container_missing: true })
    t.match(await ann.post(`${path}/start`), { status: 409, body: { code: 'E_DATABASE_NO_CONTAINER' } })
    t.match(await ann.post(`${path}/reload`), { status: 202, body: { status: 'creating' } })
    await untilRunning(ann, path)
    t.equal(await sql('select count(*) from kept'), '100', 'a reload keeps its data')
    t.equal((await ann.get(path)).body.container_missing, false)
  })

  await t.test('limits hold at once in the container that runs, and can be lifted', async t => {
    const before = await containerOf(k, id)
    const memory = 200 * 2 ** 20
    t.match(await ann.put(path, { memory_limit: memory, cpu_limit: 0.5 }), {
      status: 200,
      body: { memory_limit: memory, cpu_limit: 0.5 }
    })
    const runtime = k.service(containerRuntime)
    const nanoCpus = async (): Promise<number> =>
      (await new Docker().getContainer(before).inspect()).HostConfig.NanoCpus ?? 0
    t.equal((await runtime.stats(before)).memoryLimitBytes, memory)
    t.equal(await nanoCpus(), 5e8)
    t.match(await ann.put(path, { memory_limit: 0 }), { body: { memory_limit: 0, cpu_limit: 0.5 } })
    t.ok((await runtime.stats(before)).memoryLimitBytes > memory)
    t.equal(await nanoCpus(), 5e8, 'the other one stays')
    t.match(await ann.put(path, { cpu_limit: 0 }), { body: { memory_limit: 0, cpu_limit: 0 } })
    t.ok((await nanoCpus()) > 5e8)
    t.equal(await containerOf(k, id), before)
    t.match(await ann.put(path, { memory_limit: 1000 }), {
      status: 400,
      body: { code: 'E_DATABASE_INVALID' }
    })
    t.match(await ann.put(path, { cpu_limit: 1000 }), { status: 400, body: { code: 'E_DATABASE_INVALID' } })
  })

  await t.test('a port of the machine leads to it while external access is on', async t => {
    t.match(await ann.post(`${path}/external-access`, { enabled: true }), { status: 202 })
    const port = await until(async () => (await ann.get(path)).body.external_access?.host_port, 'its port')
    t.match((await ann.get(path)).body, {
      host_port: port,
      external_access: { enabled: true, ssh_host: 'host.example', ssh_user: 'ops' }
    })
    // A server of PostgreSQL answers this request for TLS with one letter.
    const answer = await new Promise<string>((resolve, reject) => {
      const client = connect({ host: '127.0.0.1', port })
      client.once('error', reject)
      client.once('data', data => {
        resolve(data.toString())
        client.destroy()
      })
      client.write(Buffer.from([0, 0, 0, 8, 4, 210, 22, 47]))
    })
    t.match(answer, /^[NS]$/)
    t.match(await ann.post(`${path}/external-access`, { enabled: false }), { status: 202 })
    await until(
      async () =>
        await new Promise(resolve => {
          const client = connect({ host: '127.0.0.1', port })
          client.once('error', () => resolve(true))
          client.once('connect', () => {
            client.destroy()
            resolve(false)
          })
        }),
      'the port to close'
    )
    t.match((await ann.get(path)).body, { host_port: null, external_access: null })
  })

  await t.test(
    'an application that is attached gets its connection by the names that are asked for',
    async t => {
      const application = await volumeApplication(lab, 'web', { user: 'ann' })
      await ann.put(`${application.path}/env`, { vars: [{ key: 'PGUSER', value: 'own' }] })
      t.match(
        await ann.put(`${path}/attachments/${application.id}`, {
          variables: { DATABASE_URL: 'url', PGHOST: 'host', PGUSER: 'user', PGPASSWORD: 'password' }
        }),
        { status: 200, body: { status: 'attached' } }
      )
      const variables = new Map(
        (await k.service(environmentVariables).merged(projectId, application.id)).map(one => [one.key, one])
      )
      t.match(variables.get('PGHOST'), { value: slug, isSecret: false })
      t.match(variables.get('PGPASSWORD'), { value: password, isSecret: true })
      t.match(variables.get('PGUSER'), { value: 'own' }, 'what the application has itself comes first')
      const { connection_string: connection } = (await ann.get(`${path}/credentials/reveal`)).body
      t.equal(variables.get('DATABASE_URL')?.value, connection)
      await application.deployed()
      t.equal(
        await application.run('echo "$DATABASE_URL"; echo "$PGHOST"; echo "$PGUSER"; echo "$PGPASSWORD"'),
        [connection, slug, 'own', password].join('\n'),
        'its container has them'
      )
      t.match((await ann.get(`${path}/attachments`)).body, [{ application_id: application.id }])
      t.match(await ann.put(`${path}/attachments/${application.id}`, { variables: { '1X': 'url' } }), {
        status: 400
      })
      t.match(await ann.delete(`${path}/attachments/${application.id}`), { status: 200 })
      t.match(await ann.delete(`${path}/attachments/${application.id}`), { status: 404 })
      t.equal((await k.service(environmentVariables).merged(projectId, application.id)).length, 1)
      t.match(await ann.delete(application.path), { status: 200 })
      await until(async () => {
        await k.runRemovalsNow()
        return (await containersOf(application.id)).length === 0
      }, 'its container to go')
    }
  )

  await t.test('its volume is measured, and its log is kept', async t => {
    const { body } = await ann.get(`${path}/volume`)
    t.equal(body.name, `${slug}-vol`)
    t.ok(body.size_bytes > 1_000_000, `${body.size_bytes}`)
    t.match((await ann.get(path)).body.volume, { name: `${slug}-vol`, size_bytes: Number })
    const line = await until(async () => {
      const found = (await ann.get(`${path}/logs/history?q=ready%20to%20accept`)).body
      return Array.isArray(found) ? found[0] : undefined
    }, 'a line of its log')
    t.match(line, { source_type: 'database', source_id: id, deployment_id: null })
    t.match((await ann.get(`${path}/logs/sessions`)).body, [{ deployment_id: null }])
    t.match((await ann.get(`${path}/deletion-impact`)).body, { backup_count: 0, backup_destinations: [] })
  })

  await t.test('when it is deleted nothing of it stays', async t => {
    t.match(await ann.delete(path), { status: 200, body: { status: 'deleted' } })
    t.match(await ann.get(path), { status: 404 })
    const runtime = k.service(containerRuntime)
    await until(async () => {
      await k.runRemovalsNow()
      return (await k.query('select id from databases.database')).length === 0
    }, 'the row to go')
    t.same(await runtime.list({ databaseId: id }), [])
    t.same(await runtime.volumes({ databaseId: id }), [])
  })
})
