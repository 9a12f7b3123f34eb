import { type Access, allow, definePlugin } from 'busbar/sdk'
import { test } from 'tap'
import { accessFaults } from '../../core/declarations/access-faults.js'
import { record, routeRecord } from '../../core/declarations/recorder.js'
import {
  migrationsFault,
  named,
  needsFault,
  routeValueFaults,
  scheduleTimeFaults,
  segmentFaults,
  workFaults
} from '../../core/declarations/value-faults.js'

const run = (): void => {}

test('a name begins with a small letter and has letters, digits and hyphens', t => {
  for (const name of ['a', 'clean-up', 'cleanUp2']) t.same(named(name), [], name)
  for (const name of ['', 'A', '2a', 'a b', 'a.b', undefined, 1])
    t.same(named(name), [`"${name}" is not a name`])
  t.end()
})

test('a member that no definition has is refused by its name, with the nearest one', t => {
  const given = { id: 'shop', builtIn: false }
  t.doesNotThrow(() => record(definePlugin({ id: 'shop', contributes: run }), given))
  const more = (members: object) => () => record(definePlugin({ id: 'shop', ...members }), given)
  t.throws(more({ contributions: run }), {
    message: /"contributions" is unknown; did you mean "contributes"\?/
  })
  t.throws(more({ route: run, job: run }), { message: /did you mean "routes"\?.*did you mean "jobs"\?/s })
  t.throws(more({ toString: run }), { message: /"toString" is unknown; known are id, needs/ })
  t.end()
})

test('the values of a job may be left out, and are of their kind where they are given', t => {
  t.same(workFaults('p', { name: 'a', run }), [])
  t.same(workFaults('p', { name: 'a', run, lane: 'short', attempts: 1, timeoutMs: 0.5 }), [])
  t.same(workFaults('p', { name: 'a', run, lane: 'long', attempts: 1000, timeoutMs: 1 }), [])
  const faulty: ReadonlyArray<readonly [spec: object, fault: string]> = [
    [{ lane: 'middle' }, 'lane is short or long'],
    [{ attempts: 0 }, 'attempts is a whole number from 1 to 1000'],
    [{ attempts: 1001 }, 'attempts is a whole number from 1 to 1000'],
    [{ attempts: 1.5 }, 'attempts is a whole number from 1 to 1000'],
    [{ attempts: '2' }, 'attempts is a whole number from 1 to 1000'],
    [{ timeoutMs: 0 }, 'timeoutMs is a number of milliseconds'],
    [{ timeoutMs: '5' }, 'timeoutMs is a number of milliseconds'],
    [{ run: undefined }, 'it has no function run']
  ]
  for (const [spec, fault] of faulty) t.same(workFaults('p', { name: 'a', run, ...spec }), [fault])
  t.end()
})

test('the identifier of a job has 128 characters at most, as that of a schedule', t => {
  const room = 128 - 'p:schedule.'.length
  t.same(workFaults('p', { name: 'a'.repeat(room), run }), [])
  t.same(workFaults('p', { name: 'a'.repeat(room + 1), run }), ['its name is too long'])
  t.end()
})

test('a schedule has a cron expression, and a time zone and what becomes of missed runs where it says so', t => {
  t.same(scheduleTimeFaults({ cron: '0 3 * * *' }), [])
  t.same(scheduleTimeFaults({ cron: '0 3 * * *', timeZone: 'Europe/Berlin', missed: 'skip' }), [])
  t.same(scheduleTimeFaults({ cron: '0 3 * * *', missed: 'run-once' }), [])
  t.same(scheduleTimeFaults({ cron: 3 }), ['cron and timeZone are text'])
  t.same(scheduleTimeFaults({ cron: '0 3 * * *', timeZone: 1 }), ['cron and timeZone are text'])
  t.match(scheduleTimeFaults({ cron: 'x', missed: 'all' }), [
    /"x" is not valid/,
    'missed is skip or run-once'
  ])
  t.match(scheduleTimeFaults({ cron: '0 3 * * *', timeZone: 'Nowhere' }), [/"Nowhere" is unknown/])
  t.end()
})

test('the values of a route may be left out, and are of their kind where they are given', t => {
  t.same(routeValueFaults({}), [])
  t.same(
    routeValueFaults({
      group: 'a',
      produces: 'text/csv',
      timeoutMs: 1,
      bodyLimit: { bytes: 5 },
      body: 'raw',
      limit: { max: 1, windowSeconds: 0.5 },
      limitKey: run,
      access: { kind: 'public' },
      precondition: run,
      audit: { action: 'a', resource: 'b' }
    }),
    []
  )
  for (const audit of [
    { action: 'a', resource: 'b', id: { param: 'id' } },
    { action: 'a', resource: 'b', id: { result: 'id' } }
  ])
    t.same(routeValueFaults({ audit }), [])
  t.same(routeValueFaults({ bodyLimit: 5 }), [])
  const faulty: ReadonlyArray<readonly [spec: object, fault: RegExp]> = [
    [{ group: 1 }, /^group is text/],
    [{ produces: 1 }, /^produces is text/],
    [{ timeoutMs: 0 }, /^timeoutMs is/],
    [{ timeoutMs: -1 }, /^timeoutMs is/],
    [{ bodyLimit: 0 }, /^bodyLimit is/],
    [{ bodyLimit: 1.5 }, /^bodyLimit is/],
    [{ bodyLimit: null }, /^bodyLimit is/],
    [{ bodyLimit: { bytes: '5' } }, /^bodyLimit is/],
    [{ body: 'xml' }, /^body is/],
    [{ idempotent: 'yes' }, /^idempotent is/],
    [{ idempotent: true, body: 'stream' }, /^an idempotent operation takes no stream/],
    [{ precondition: 1 }, /^precondition is/],
    [{ limit: { max: 1 } }, /^limit is/],
    [{ limit: { windowSeconds: 1 } }, /^limit is/],
    [{ limit: { max: 0, windowSeconds: 1 } }, /^limit is/],
    [{ limit: null }, /^limit is/],
    [{ limitKey: run, access: { kind: 'public' } }, /^limitKey is/],
    [{ limitKey: run, limit: { max: 1, windowSeconds: 1 }, access: { kind: 'token' } }, /^limitKey is/],
    [{ limitKey: 1, limit: { max: 1, windowSeconds: 1 }, access: { kind: 'public' } }, /^limitKey is/],
    [{ limitKey: run, limit: { max: 1, windowSeconds: 1 } }, /^limitKey is/],
    [{ audit: null }, /^audit is/],
    [{ audit: { action: 'a' } }, /^audit is/],
    [{ audit: { resource: 'a' } }, /^audit is/],
    [{ audit: { action: 'a', resource: 'b', id: {} } }, /^audit is/],
    [{ audit: { action: 'a', resource: 'b', id: null } }, /^audit is/]
  ]
  for (const [spec, fault] of faulty) {
    const faults = routeValueFaults(spec)
    t.equal(faults.length, 1, JSON.stringify(spec))
    t.match(faults[0], fault)
  }
  t.end()
})

test('a path has plain segments and parameters, each of a name of its own', t => {
  for (const url of ['/api/apps/:id', '/api/apps/:id/a-b.c/:other']) t.same(segmentFaults(url), [], url)
  t.match(segmentFaults('/api/*'), [/"\*" in its path/])
  t.match(segmentFaults('/api/:id.json'), [/":id.json" in its path/])
  t.match(segmentFaults('/api//a'), [/"" in its path/])
  t.same(segmentFaults('/:id/:id'), ['its path has two parameters of one name'])
  t.end()
})

test('the first fault of a list of migrations is told', t => {
  const sql = 'select 1'
  t.equal(migrationsFault(undefined), null)
  t.equal(migrationsFault([]), null)
  t.equal(
    migrationsFault([
      { name: 'a', phase: 'expand', sql },
      { name: 'b', phase: 'contract', sql }
    ]),
    null
  )
  t.equal(migrationsFault({}), 'migrations is not a list')
  t.equal(migrationsFault([null]), 'migration 1 has no name')
  t.equal(
    migrationsFault([
      { name: 'a', phase: 'expand', sql },
      { name: '', phase: 'expand', sql }
    ]),
    'migration 2 has no name'
  )
  t.equal(migrationsFault([{ name: 1, phase: 'expand', sql }]), 'migration 1 has no name')
  t.equal(
    migrationsFault([
      { name: 'a', phase: 'expand', sql },
      { name: 'a', phase: 'expand', sql }
    ]),
    'migration a is declared twice'
  )
  t.equal(migrationsFault([{ name: 'a', sql }]), 'the phase of migration a is expand or contract')
  t.equal(migrationsFault([{ name: 'a', phase: 'expand', sql: ' ' }]), 'migration a has no sql')
  t.equal(migrationsFault([{ name: 'a', phase: 'expand' }]), 'migration a has no sql')
  t.end()
})

test('what a plugin needs are keys of services and of extension points', t => {
  t.equal(needsFault(undefined), null)
  t.equal(needsFault({}), null)
  t.equal(
    needsFault({
      a: { kind: 'service', id: 'x.y' },
      b: { kind: 'extension-point', id: 'x.z' },
      c: { kind: 'optional', service: { id: 'x.y' } }
    }),
    null
  )
  t.equal(needsFault(null), 'needs is not an object')
  t.equal(needsFault('all'), 'needs is not an object')
  for (const need of [
    undefined,
    { kind: 'service' },
    { kind: 'other', id: 'x' },
    { kind: 'optional', id: 'x' },
    { kind: 'service', service: { id: 'x' } },
    { kind: 'optional', service: {} }
  ])
    t.match(needsFault({ a: need }), /^needs\.a is no key/)
  t.end()
})

test('an access value is of a known kind, with what that kind needs', t => {
  const faultsOf = (value: unknown): string[] => accessFaults(value as Access, [], [])
  t.same(faultsOf(allow.public('all may read it')), [])
  t.same(faultsOf({ kind: 'session', project: 'none' }), [])
  t.same(faultsOf({ kind: 'session', project: 'filtered', role: 'admin' }), [])
  t.same(faultsOf({ kind: 'token', scope: 'read', project: 'never-pinned' }), [])
  for (const missing of [undefined, null, 'public']) t.match(faultsOf(missing), [/^access is missing/])
  t.same(faultsOf({ kind: 'public' }), ['allow.public needs the reason why'])
  t.same(faultsOf({ kind: 'public', reason: '' }), ['allow.public needs the reason why'])
  t.same(faultsOf({ kind: 'all' }), ['access kind "all" is unknown'])
  t.match(faultsOf({ kind: 'token', scope: 'root', project: 'none' }), [/^scope "root" is none of/])
  t.same(faultsOf({ kind: 'session', role: 'owner', project: 'none' }), ['role "owner" is not admin'])
  t.same(faultsOf({ kind: 'session' }), ['the access names no project rule'])
  t.same(faultsOf({ kind: 'session', project: 'all' }), ['project rule "all" is unknown'])
  t.end()
})

test('a project rule names parameters of the path, and leaves out none that holds the id of a resource', t => {
  const faultsOf = (project: object, params: string[]): string[] =>
    accessFaults({ kind: 'session', project } as unknown as Access, params, ['application'])
  t.same(faultsOf({ param: 'id' }, ['id']), [])
  t.same(faultsOf({ param: 'id' }, ['id', 'page']), [], 'a parameter that is no id of a resource')
  t.same(faultsOf({ param: 'id' }, []), ['the project rule names "id", which is not in the path'])
  const chain = { applicationId: 'application' }
  t.same(faultsOf({ param: 'id', chain }, ['id', 'applicationId']), [])
  t.same(faultsOf({ param: 'id', chain }, ['id']), [
    'the project rule names "applicationId", which is not in the path'
  ])
  t.same(faultsOf({ param: 'id', self: 'userId' }, ['id']), [
    'the project rule names "userId", which is not in the path'
  ])
  t.same(faultsOf({ param: 'id' }, ['id', 'applicationId']), [
    "the project rule's chain leaves out \"applicationId\"; add applicationId: 'application' to it"
  ])
  t.same(faultsOf({ param: 'id', of: 'application' }, ['id', 'applicationId']), [], 'it has no chain')
  t.same(faultsOf({ param: 'id', of: ['application', 'database'] }, ['id']), [])
  for (const of of [[], [7], 7, null])
    t.same(
      faultsOf({ param: 'id', of }, ['id']),
      ['the project rule names no kind of resource in "of"'],
      JSON.stringify(of)
    )
  t.end()
})

test('data that cannot be copied is told with the route and the field', t => {
  const spec = {
    method: 'GET',
    url: '/api/a',
    access: { ...allow.session({ project: 'none' }), more: () => {} },
    summary: 's',
    handler: () => null
  } as const
  t.throws(() => routeRecord(spec as never, { id: 'a' }), /^GET \/api\/a: access is to be plain data: /)
  t.end()
})
