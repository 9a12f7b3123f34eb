import { type AnyPlugin, allow, definePlugin, extensionPoint, type ResourceSpec } from 'busbar/sdk'
import { test } from 'tap'
import { record } from '../../core/declarations/recorder.js'
import { installation } from '../plugins/third-party-kit.js'

const recorded = (definition: Partial<AnyPlugin>, kinds: readonly string[] = []) =>
  record(definePlugin({ id: 'lockers', ...definition }), { id: 'lockers', builtIn: false, kinds })

const declaring = (spec: object): Partial<AnyPlugin> => ({
  resources: resource => {
    resource(spec as ResourceSpec<{ id: string }, object>)
  }
})

test('every fault of a declared resource is named', async t => {
  const faults: ReadonlyArray<readonly [spec: object, fault: RegExp]> = [
    [{ kind: 'Locker', table: 'locker' }, /its kind is lower-case words/],
    [{ kind: 'locker', table: 'x_lockers.locker' }, /table is the name of a table/],
    [{ kind: 'locker', table: 'locker', parents: { "project', now(), '": 'id' } }, /parents names a column/],
    [
      { kind: 'locker', table: 'locker', parents: { project: 'id" is null or "id' } },
      /parents names a column/
    ],
    [{ kind: 'locker', table: 'locker', name: 'a b' }, /name is the name of a column/],
    [{ kind: 'locker', table: 'locker', removal: 5 }, /removal is an object/],
    [
      { kind: 'locker', table: 'locker', removal: { teardown: extensionPoint('projects.teardown') } },
      /teardown is an extension point of the plugin: extensionPoint\('lockers\.teardown'\)/
    ],
    [{ kind: 'locker', table: 'locker', removal: { turnsBy: '' } }, /turnsBy is the name of a column/],
    [{ kind: 'locker', table: 'locker', removal: { run: 'later' } }, /run is not a function/]
  ]
  for (const [spec, fault] of faults) t.throws(() => recorded(declaring(spec)), { message: fault })
  const { resources } = recorded(
    declaring({ kind: 'locker', table: 'locker', parents: { project: 'project_id' } })
  )
  t.match(resources, [
    { plugin: 'lockers', kind: 'locker', table: 'locker', parents: { project: 'project_id' } }
  ])
  t.throws(() => {
    Object.assign(resources[0]?.parents ?? {}, { project: 'other' })
  }, 'it is frozen')
})

test('the removal job of the kernel is not to be taken', async t => {
  const job: Partial<AnyPlugin> = { jobs: job => job({ name: 'teardown', run: async () => {} }) }
  t.doesNotThrow(() => recorded({ ...declaring({ kind: 'locker', table: 'locker' }), ...job }))
  t.throws(() => recorded({ ...declaring({ kind: 'locker', table: 'locker', removal: {} }), ...job }), {
    message: /job teardown: the kernel has a job of this name/
  })
})

test('a route that leaves the id of a resource out of its chain is refused, whoever declares the kind', async t => {
  const routed = (url: string): Partial<AnyPlugin> => ({
    routes: route => {
      route({
        method: 'GET',
        url,
        summary: 's',
        access: allow.token('read', { project: { param: 'projectId' } }) as never,
        handler: () => ({})
      })
    }
  })
  const url = '/api/x/lockers/:projectId/:deployHookId/:otherId'
  t.throws(() => recorded(routed(url), ['deploy_hook']), {
    message: /the project rule's chain leaves out "deployHookId"; add deployHookId: 'deploy_hook' to it/
  })
  t.doesNotThrow(() => recorded(routed(url), ['other_thing']))
  t.throws(
    () =>
      recorded({
        ...declaring({ kind: 'locker', table: 'locker' }),
        ...routed('/api/x/lockers/:projectId/:lockerId')
      }),
    { message: /leaves out "lockerId"/ }
  )
})

test('a kind is declared by one plugin, and its table has what is declared', async t => {
  const { write, change, admin } = await installation(t)
  const table =
    "[{ name: '001-create', phase: 'expand', sql: 'create table $schema.locker (id uuid primary key)' }]"
  await write(
    'bare',
    `migrations: ${table}, resources: resource => { resource({ kind: 'locker', table: 'locker', removal: {} }) }`
  )
  await change('bare', 'enable')
  t.match((await admin.get('/api/plugins/bare')).body, {
    reason: /resource locker: column "deleting_at" does not exist/
  })
  await write('copy', "resources: resource => { resource({ kind: 'application', table: 'application' }) }")
  await change('copy', 'enable')
  t.match((await admin.get('/api/plugins/copy')).body, {
    state: 'failed',
    reason: /the kind "application" is already declared by "applications"/
  })
})
