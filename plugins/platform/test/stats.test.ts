import { randomUUID } from 'node:crypto'
import { type ApplicationStatus, applicationRegistry } from 'busbar/api/applications'
import { failedBackups, serviceCounters } from 'busbar/api/platform'
import { type AnyPlugin, definePlugin } from 'busbar/sdk'
import { createTestKernel, type TestKernel } from 'busbar/sdk/testing'
import { type Test, test } from 'tap'
import { takeAwayFromEngine } from '../../../lab/engine.js'
import { fields } from '../../../test/contract/extensions.js'
import { faultsOf, described as operations } from '../../../test/contract/shape.js'

takeAwayFromEngine()
const extended = Object.values(fields).flatMap(names => Object.keys(names))

async function platform(t: Test, options: Parameters<typeof createTestKernel>[0] = {}): Promise<TestKernel> {
  const k = await createTestKernel(options)
  t.teardown(async () => await k.close())
  return k
}

/** With another plugin in the place of the one of databases: of each kind of resource one counts. */
async function withCounter(t: Test, definition: AnyPlugin): Promise<TestKernel> {
  const manifest = { id: definition.id, optional: { platform: '^0.1.0' } }
  const k = await platform(t, { inline: [{ manifest, definition }] })
  await k.disable('databases')
  await k.enable(definition.id)
  return k
}

let made = 0
/** A project of a user with one application for each status. */
async function projectOf(k: TestKernel, user: string, statuses: readonly ApplicationStatus[]) {
  const owner = await k.as.session(user)
  const slug = `p-${made++}`
  const projectId: string = (await owner.post('/api/projects', { name: slug, slug })).body.id
  const applicationIds: string[] = []
  for (const status of statuses) {
    const { body } = await owner.post(`/api/projects/${projectId}/applications`, {
      name: `a${made++}`,
      type: 'image',
      build_type: 'image',
      source_image: 'busybox:lab'
    })
    await k.service(applicationRegistry).setStatus(body.id, status)
    applicationIds.push(body.id)
  }
  return { owner, projectId, applicationIds }
}

const dayMs = 86_400_000

/** A record of a deployment that was begun so many days ago; its build took so many seconds. */
async function deployment(
  k: TestKernel,
  { projectId, applicationId }: { readonly projectId: string; readonly applicationId: string | undefined },
  status: string,
  { daysAgo = 0, buildSeconds }: { readonly daysAgo?: number; readonly buildSeconds?: number } = {}
): Promise<void> {
  const startedAt = new Date(Date.now() - daysAgo * dayMs)
  const buildEndedAt = buildSeconds === undefined ? null : new Date(startedAt.getTime() + buildSeconds * 1000)
  await k.query(
    `insert into deployments.deployment (id, project_id, application_id, kind, status, triggered_by, started_at, build_started_at, build_ended_at)
    values ($1, $2, $3, 'deploy', $4, 'manual', $5, $6, $7)`,
    [randomUUID(), projectId, applicationId, status, startedAt, buildEndedAt && startedAt, buildEndedAt]
  )
}

test('an admin is told of all applications and deployments, a member of their own', async t => {
  const k = await platform(t)
  const all = ['running', 'running', 'unhealthy', 'error', 'stopped', 'inactive'] as const
  const ann = await projectOf(k, 'ann', all)
  const bob = await projectOf(k, 'bob', ['running', 'error'])
  const of = (at: number) => ({ projectId: ann.projectId, applicationId: ann.applicationIds[at] })
  const ofBob = { projectId: bob.projectId, applicationId: bob.applicationIds[0] }
  await deployment(k, of(0), 'success', { daysAgo: 1, buildSeconds: 10 })
  await deployment(k, of(0), 'failed')
  await deployment(k, of(1), 'failed', { daysAgo: 2, buildSeconds: 1000 })
  await deployment(k, of(1), 'success', { buildSeconds: 30 })
  await deployment(k, of(2), 'success', { daysAgo: 6 })
  await deployment(k, of(2), 'success', { daysAgo: 8, buildSeconds: 5000 })
  await deployment(k, of(3), 'building')
  await deployment(k, of(0), 'pending')
  await deployment(k, ofBob, 'failed', { daysAgo: 30 })
  const read = async (client: { get(path: string): Promise<{ status: number; body: any }> }) => {
    const { status, body } = await client.get('/api/stats')
    t.equal(status, 200)
    return body
  }

  await t.test('the member', async t => {
    t.match(await read(ann.owner), {
      is_admin: false,
      app_health: { running: 2, unhealthy: 1, errored: 0, stopped: 1, inactive: 1, busy: 1, total: 6 },
      deploy_7d: { succeeded: 3, failed: 2, total: 5, median_build_ms: 20_000 },
      needs_attention: {
        failed_deploys: 0,
        error_services: 0,
        unhealthy_services: 1,
        failed_backups: 0,
        total: 1
      },
      host: null,
      config_warnings: []
    })
    t.match(await read(bob.owner), {
      app_health: { running: 1, errored: 1, total: 2 },
      deploy_7d: { total: 0, median_build_ms: 0 },
      needs_attention: { failed_deploys: 1, error_services: 1, total: 2 }
    })
  })

  await t.test('the admin, and a token of the admin that is pinned to a project', async t => {
    const admin = await k.as.session()
    t.match(await read(admin), {
      is_admin: true,
      app_health: { running: 3, unhealthy: 1, errored: 1, stopped: 1, inactive: 1, busy: 1, total: 8 },
      needs_attention: { failed_deploys: 1, error_services: 1, unhealthy_services: 1, total: 3 }
    })
    t.match(await read(await k.as.token('read', { user: 'admin', pins: [bob.projectId] })), {
      is_admin: true,
      app_health: { total: 2 },
      deploy_7d: { total: 0 },
      host: null,
      config_warnings: []
    })
  })

  await t.test(
    'a project that is shared counts for everybody, and one that is deleted for nobody',
    async t => {
      t.match(await read(await k.as.session('carol')), { app_health: { total: 0 } })
      t.equal((await bob.owner.put(`/api/projects/${bob.projectId}/sharing`, { shared: true })).status, 200)
      t.match(await read(await k.as.session('carol')), { app_health: { total: 2 } })
      const gone = await projectOf(k, 'dora', ['running'])
      t.match(await read(gone.owner), { app_health: { total: 3 } })
      t.equal((await gone.owner.delete(`/api/projects/${gone.projectId}`)).status, 200)
      t.match(await read(gone.owner), { app_health: { total: 2 } })
    }
  )

  await t.test('both answers are as the contract says', async t => {
    const admin = await k.as.session()
    for (const path of ['/api/stats', '/api/summary']) {
      const operation = operations.find(one => one.method === 'GET' && one.path === path)
      t.same(
        faultsOf((await admin.get(path)).body, operation?.responses['200'] ?? 'missing', extended),
        [],
        path
      )
    }
  })
})

test('the summary counts everything, for admins and for tokens that read metrics', async t => {
  const k = await platform(t)
  const { projectId, applicationIds } = await projectOf(k, 'ann', [
    'running',
    'unhealthy',
    'error',
    'stopped',
    'inactive'
  ])
  for (const status of ['success', 'failed', 'building'])
    await deployment(k, { projectId, applicationId: applicationIds[0] }, status)
  const token = await k.as.token('metrics', { user: 'admin' })
  t.match(await token.get('/api/summary'), {
    status: 200,
    body: {
      projects: 1,
      applications: 5,
      databases: 0,
      deployments: 3,
      containers: {
        running: 2,
        stopped: 1,
        error: 1,
        total: 4,
        by_type: { application: { running: 2, total: 4 } }
      }
    }
  })
  t.match(await (await k.as.session('ann')).get('/api/summary'), {
    status: 403,
    body: { code: 'E_FORBIDDEN' }
  })
  t.equal(
    (await (await k.as.token('metrics', { user: 'admin', pins: [projectId] })).get('/api/summary')).status,
    200
  )
  t.match(await (await k.as.token('metrics', { user: 'ann' })).get('/api/stats'), {
    status: 403,
    body: { code: 'E_SCOPE' }
  })
})

test('while plugins are off that count something, the rest is told', async t => {
  const k = await platform(t)
  const { projectId, applicationIds } = await projectOf(k, 'ann', ['running'])
  await deployment(k, { projectId, applicationId: applicationIds[0] }, 'success')
  await k.disable('deployments', { cascade: true })
  const admin = await k.as.session()
  t.match((await admin.get('/api/stats')).body, { app_health: { running: 1 }, deploy_7d: { total: 0 } })
  t.match((await admin.get('/api/summary')).body, { applications: 1, deployments: 0 })
  await k.disable('applications', { cascade: true })
  t.match((await admin.get('/api/stats')).body, { app_health: { total: 0 } })
})

test('what other plugins count is added: databases, and backups that have failed', async t => {
  const other = definePlugin({
    id: 'other',
    contributes(contribute) {
      contribute(serviceCounters, 'database', {
        count: async () => ({ running: 1, unhealthy: 2, errored: 3, stopped: 4, inactive: 5 })
      })
      contribute(failedBackups, 'volumes', { count: async () => 2 })
      contribute(failedBackups, 'databases', { count: async () => 1 })
      contribute(failedBackups, 'broken', { count: async () => 'many' as unknown as number })
    }
  })
  const k = await withCounter(t, other)
  const admin = await k.as.session()
  t.match((await admin.get('/api/stats')).body, {
    app_health: { total: 0 },
    needs_attention: { error_services: 3, unhealthy_services: 2, failed_backups: 3, total: 8 }
  })
  t.match((await (await k.as.session('ann')).get('/api/stats')).body, {
    needs_attention: { failed_backups: 0, total: 5 },
    host: null
  })
  t.match((await admin.get('/api/summary')).body, {
    databases: 15,
    containers: { total: 10, by_type: { database: { running: 3, total: 10 } } }
  })
})

test('an admin is told what the machine uses while something measures it, and a member is not', async t => {
  const k = await platform(t)
  const admin = await k.as.session()
  const { host } = (await admin.get('/api/stats')).body
  t.match(host, { cpu_percent: Number, swap_total: Number, recorded_at: /^\d{4}-/ })
  t.ok(host.memory_used > 0 && host.memory_used < host.memory_total)
  t.ok(host.disk_used > 0 && host.disk_used <= host.disk_total)
  t.equal((await (await k.as.session('ann')).get('/api/stats')).body.host, null)
  await k.disable('metrics')
  await k.reload('platform')
  t.equal((await admin.get('/api/stats')).body.host, null)
})

test('a counter that fails is the answer, and no number is made up', async t => {
  const broken = definePlugin({
    id: 'broken',
    contributes(contribute) {
      contribute(serviceCounters, 'database', {
        count: async () => await Promise.reject(new Error('broken'))
      })
    }
  })
  const k = await withCounter(t, broken)
  const admin = await k.as.session()
  t.equal((await admin.get('/api/stats')).status, 500)
  t.equal((await admin.get('/api/summary')).status, 500)
})
