import { test } from 'tap'
import type { ApplicationStatus } from '../api.js'
import { changeMarkers } from '../change-markers.js'
import { statusAfter, statusOf } from '../container-status.js'
import { decideHealthCheck, healthCheckOf, initialHealthCheck } from '../health-check.js'
import { MemoryEnds } from '../memory-ends.js'

const fault = (field: string) => ({ status: 400, code: 'E_APPLICATION_INVALID', details: { field } })

const now = new Date('2030-01-01T00:00:00Z')
const event = (action: Parameters<typeof statusAfter>[1]['action'], exitCode: number | null = null) => ({
  action,
  exitCode,
  hasLackedMemory: false
})

test('a change of the source and one of the configuration set their own markers, and no change sets none', async t => {
  const current = { branch: 'main', cpu_limit: 1, name: 'a' } as never
  t.same(changeMarkers(current, { branch: 'next' }, now), { source_changed_at: now })
  t.same(changeMarkers(current, { cpu_limit: 2 }, now), { config_changed_at: now })
  t.same(changeMarkers(current, { branch: 'main', cpu_limit: 1, name: 'b' }, now), {})
})

test('each event of the engine has its status', async t => {
  const rows: Array<[ApplicationStatus, ReturnType<typeof event>, ApplicationStatus]> = [
    ['stopped', event('start'), 'running'],
    ['error', event('restart'), 'running'],
    ['running', event('stop'), 'stopped'],
    ['running', event('die', 0), 'stopped'],
    ['running', event('die', 137), 'stopped'],
    ['running', event('die', 143), 'stopped'],
    ['running', event('die', 1), 'error'],
    ['running', event('die', 128), 'error'],
    ['running', event('die', 193), 'error'],
    ['unhealthy', event('die', 1), 'error'],
    ['error', event('die', 0), 'error'],
    ['stopped', event('die', 1), 'stopped'],
    ['running', event('oom'), 'running'],
    ['unhealthy', event('oom'), 'unhealthy'],
    ['stopped', { ...event('oom'), hasLackedMemory: true }, 'error'],
    ['running', { ...event('die', 137), hasLackedMemory: true }, 'error'],
    ['stopped', { ...event('die', 137), hasLackedMemory: true }, 'stopped'],
    ['unhealthy', event('healthy'), 'running'],
    ['running', event('unhealthy'), 'unhealthy'],
    ['stopped', event('unhealthy'), 'stopped'],
    ['running', event('destroy'), 'running']
  ]
  for (const [before, what, after] of rows)
    t.equal(statusAfter(before, what), after, `${before} ${what.action} ${String(what.exitCode)}`)
})

test('a container has ended for want of memory when the engine says both, in whichever order', async t => {
  type Said = Parameters<MemoryEnds['isOne']>[0]
  const told = (...said: Array<[Said['action'], number?]>): boolean[] => {
    const ends = new MemoryEnds()
    return said.map(([action, exitCode = null]) => ends.isOne({ action, exitCode, containerId: 'c' }))
  }
  t.same(told(['oom'], ['oom'], ['die', 137]), [false, false, true])
  t.same(told(['die', 137], ['oom']), [false, true])
  t.same(told(['oom'], ['die', 1]), [false, false], 'it has ended by itself')
  t.same(told(['die', 137], ['stop'], ['oom']), [false, false, false], 'it was stopped')
  t.same(told(['oom'], ['die', 0], ['start'], ['die', 137]), [false, false, false, false])
  t.same(told(['die', 137], ['start'], ['oom']), [false, false, false], 'it is up again')

  const ends = new MemoryEnds()
  ends.isOne({ action: 'oom', exitCode: null, containerId: 'c' })
  ends.keep(new Set(['d']))
  t.notOk(ends.isOne({ action: 'die', exitCode: 137, containerId: 'c' }), 'nothing is kept of what is gone')
})

test('a comparison takes the status from the container, and leaves those alone that are on their way', async t => {
  const container = (status: 'running' | 'exited' | 'restarting' | 'dead', more = {}) => ({
    status,
    exitCode: 0,
    oomKilled: false,
    health: null,
    ...more
  })
  t.equal(statusOf('error', container('running')), 'running')
  t.equal(statusOf('running', container('running', { health: 'unhealthy' })), 'unhealthy')
  t.equal(
    statusOf('unhealthy', container('running')),
    'unhealthy',
    'without a check of the engine, what another has found stands'
  )
  t.equal(statusOf('unhealthy', container('running', { health: 'healthy' })), 'running')
  t.equal(statusOf('running', container('exited', { exitCode: 1 })), 'error')
  t.equal(statusOf('stopped', container('exited', { exitCode: 1 })), 'stopped')
  t.equal(statusOf('running', container('exited', { exitCode: 137, oomKilled: true })), 'error')
  t.equal(
    statusOf('running', container('exited', { exitCode: 143, oomKilled: true })),
    'stopped',
    'the kernel had taken another program than its first one'
  )
  t.equal(statusOf('stopped', container('exited', { exitCode: 137, oomKilled: true })), 'stopped')
  t.equal(statusOf('running', container('restarting')), 'running')
  t.equal(statusOf('running', undefined), 'stopped')
  t.equal(statusOf('error', undefined), 'error')
})

test('a health check is replaced as a whole: what belongs to another type is cleared', async t => {
  t.match(
    decideHealthCheck({
      type: 'http',
      path: '/up',
      expect_status: 204,
      timeout_seconds: 30,
      command: 'x',
      retries: 9
    }),
    {
      health_check_type: 'http',
      health_check_path: '/up',
      health_check_expect_status: 204,
      health_check_timeout_seconds: 30,
      health_check_command: null,
      health_check_retries: null
    }
  )
  t.match(
    decideHealthCheck({ type: 'command', command: 'true', interval_seconds: 0, retries: -1, path: '/up' }),
    {
      health_check_command: 'true',
      health_check_interval_seconds: null,
      health_check_retries: null,
      health_check_path: null
    }
  )
  t.match(decideHealthCheck({ type: 'none', path: 'nonsense' }), {
    health_check_type: 'none',
    health_check_path: null
  })
})

test('a health check that cannot work is refused by the name of the field', async t => {
  t.throws(() => decideHealthCheck({ type: 'http', path: 'up' }), fault('path'))
  t.throws(() => decideHealthCheck({ type: 'http', path: '/', expect_status: 99 }), fault('expect_status'))
  t.throws(() => decideHealthCheck({ type: 'http', path: '/', expect_status: 600 }), fault('expect_status'))
  t.throws(() => decideHealthCheck({ type: 'command', command: ' ' }), fault('command'))
  t.throws(() => initialHealthCheck('up'), fault('health_check_path'))
})

test('a deploy gets the check with its defaults, and none when http has no path', async t => {
  t.same(healthCheckOf(initialHealthCheck(undefined)), { type: 'none' })
  t.same(healthCheckOf(initialHealthCheck('/up')), {
    type: 'http',
    path: '/up',
    expectStatus: 0,
    windowSeconds: 120
  })
  t.same(healthCheckOf(decideHealthCheck({ type: 'command', command: 'true' })), {
    type: 'command',
    command: 'true',
    intervalSeconds: 30,
    retries: 3,
    startPeriodSeconds: 0,
    timeoutSeconds: 30
  })
})
