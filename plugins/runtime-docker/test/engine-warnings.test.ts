import type { EngineInfo } from 'busbar/api/containers'
import { Problem } from 'busbar/sdk'
import { test } from 'tap'
import { awayWarning, engineWarnings } from '../engine-warnings.js'

const info: EngineInfo = {
  version: '20.10.24',
  apiVersion: '1.41',
  platform: 'linux/amd64',
  containers: 0,
  containersRunning: 0,
  containersPaused: 0,
  containersStopped: 0,
  images: 0,
  name: 'vm',
  operatingSystem: 'Debian',
  osType: 'linux',
  architecture: 'x86_64',
  kernelVersion: '6.1',
  loggingDriver: 'json-file',
  cgroupDriver: 'systemd',
  unlimited: [],
  clockAheadMs: 100,
  cores: 2,
  memoryBytes: 1,
  dataRoot: '/var/lib/docker',
  storageDriver: 'overlay2',
  cgroupVersion: 2,
  place: 'here'
}
const good = { packets: 'limited', groups: 'limited', bridges: 'limited' } as const
const codes = (
  more: Partial<EngineInfo>,
  states: Partial<Record<keyof typeof good, string>> = {}
): string[] =>
  engineWarnings({ ...info, ...more }, { ...good, ...states } as Parameters<typeof engineWarnings>[1]).map(
    ({ code }) => code
  )

test('an engine as the platform is made for is warned of nothing', t => {
  t.same(codes({}), [])
  t.same(codes({ apiVersion: '1.52', clockAheadMs: null }), [])
  t.end()
})

test('an engine that is too old is named with its version, and an API of three digits is no old one', t => {
  t.same(codes({ apiVersion: '1.40', version: '19.03' }), ['engine_too_old'])
  t.same(codes({ apiVersion: '1.100' }), [])
  t.end()
})

test('limits that the machine of the engine does not support are named', t => {
  const [warning] = engineWarnings({ ...info, unlimited: ['swap', 'processes'] }, good)
  t.match(warning, {
    code: 'cgroup_limits_missing',
    message: /swap, number of processes/,
    remedy: /swapaccount=1/
  })
  t.end()
})

test('what keeps containers from their machine and does not hold is named', t => {
  t.same(codes({}, { packets: 'failed' }), ['host_exposed'])
  t.same(codes({}, { packets: 'unguarded' }), ['containers_unguarded'])
  t.same(codes({}, { bridges: 'failed' }), ['containers_unguarded'])
  t.same(codes({}, { groups: 'failed' }), ['containers_unbounded'])
  t.same(codes({}, { packets: 'unlimited' }), [], 'somebody has said so')
  t.end()
})

test('a clock of the engine that differs by seconds, and a driver that copies everything, are named', t => {
  t.same(codes({ clockAheadMs: -6_000 }), ['engine_clock'])
  t.same(codes({ clockAheadMs: 6_000 }), ['engine_clock'])
  t.same(codes({ storageDriver: 'vfs' }), ['slow_storage_driver'])
  t.end()
})

test('an engine that is away is named with the reason, and with what helps', t => {
  t.match(awayWarning(new Problem(503, 'E_ENGINE_UNREACHABLE', 'no socket', { remedy: 'start it' })), {
    code: 'engine_unreachable',
    message: /no socket/,
    remedy: 'start it'
  })
  t.match(awayWarning('away'), { code: 'engine_unreachable', remedy: /DOCKER_HOST/ })
  t.end()
})
