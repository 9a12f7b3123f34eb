import { randomUUID } from 'node:crypto'
import { createTestKernel } from 'busbar/sdk/testing'
import { test } from 'tap'

/** Nothing is made on an engine: a schedule is refused, or kept. */
test('a schedule names databases only of what has some to choose from', { timeout: 120_000 }, async t => {
  const k = await createTestKernel()
  t.teardown(() => k.close())
  const ann = await k.as.session('ann')
  const { body: project } = await ann.post('/api/projects', {
    name: 'x',
    slug: `t-${randomUUID().slice(0, 8)}`
  })
  const url = `/api/projects/${project.id}`
  await k.disable('runtime-docker', { force: true }).catch(() => undefined)
  const { body: destination } = await ann.post(`${url}/backup-destinations`, {
    name: 'Here',
    provider: 'local'
  })
  const config = { destination_id: destination.id, schedule: '0 3 * * *' }
  const configsOf = async (body: object): Promise<string> => {
    const made = await ann.post(`${url}/databases`, body)
    t.equal(made.status, 202, JSON.stringify(made.body))
    return `${url}/databases/${made.body.id}/backup-configs`
  }
  const other = { type: 'other', image: 'busybox:lab', container_port: 80 }
  const command = { backup_mode: 'command', backup_command: 'x', restore_command: 'y' }

  for (const [name, body] of Object.entries({
    redis: { type: 'redis' },
    files: other,
    command: { ...other, ...command }
  })) {
    const configs = await configsOf({ name, ...body })
    const refusal = {
      status: 400,
      body: {
        code: 'E_BACKUP_DATABASES_CHOICE',
        field: 'databases',
        error: /^databases: .*; leave it out: all that is there is backed up$/
      }
    }
    t.match(await ann.post(configs, { ...config, databases: ['shop'] }), refusal, name)
    const made = await ann.post(configs, { ...config, databases: [] })
    t.match(made, { status: 201, body: { all_databases: true } }, name)
    t.match(await ann.put(`${configs}/${made.body.id}`, { databases: ['shop'] }), refusal, name)
    t.match((await ann.get(configs)).body, [{ databases: [] }], name)
  }
  for (const type of ['postgres', 'mysql', 'mariadb', 'mongo']) {
    const configs = await configsOf({ name: type, type })
    const made = await ann.post(configs, { ...config, databases: ['shop'] })
    t.match(made, { status: 201, body: { databases: ['shop'] } }, type)
  }
})
