import { test } from 'tap'
import { judgeAfterCrash } from '../engine-crash.js'

const outage = { lostAt: new Date('2026-01-31T12:00:00.000Z'), backAt: new Date('2026-01-31T12:00:10.000Z') }
const before = '2026-01-31T11:59:00.123456789Z'
const after = '2026-01-31T12:00:07.123456789Z'
const later = '2026-01-31T12:00:11.123456789Z'

const container = (labels: Record<string, string>, state: { Status: string, FinishedAt: string }, { image = 'web:1', policy = 'unless-stopped', created = before } = {}) =>
  judgeAfterCrash({ Config: { Image: image, Labels: labels }, Created: created, State: state, HostConfig: { RestartPolicy: { Name: policy } } } as never, outage)
const ours = { 'busbar-instance': 'x' }
const built = { 'busbar-image-instance': 'x' }
const id = `sha256:${'a'.repeat(64)}`

test('what went down with the engine is started again', async t => {
  t.equal(container(ours, { Status: 'exited', FinishedAt: after }), 'start')
  t.equal(container(ours, { Status: 'exited', FinishedAt: before }), 'leave', 'it had been stopped before')
  t.equal(container(ours, { Status: 'exited', FinishedAt: later }), 'leave', 'it has been stopped since')
  t.equal(container(ours, { Status: 'running', FinishedAt: before }), 'leave')
  t.equal(container(ours, { Status: 'restarting', FinishedAt: after }), 'leave', 'the engine sees to it')
  t.equal(container(ours, { Status: 'created', FinishedAt: '0001-01-01T00:00:00Z' }), 'leave')
  t.equal(container(ours, { Status: 'exited', FinishedAt: after }, { policy: 'no' }), 'leave')
})

test('the steps of builds that nobody waits for are removed, and nothing that a person has started', async t => {
  t.equal(container(built, { Status: 'running', FinishedAt: before }, { image: id, policy: '' }), 'remove')
  t.equal(container(built, { Status: 'exited', FinishedAt: after }, { image: id, policy: '' }), 'remove')
  t.equal(container(built, { Status: 'running', FinishedAt: before }, { image: id, created: after, policy: '' }), 'leave', 'a build that has begun since')
  t.equal(container(built, { Status: 'exited', FinishedAt: after }), 'leave', 'started by a person from an image of ours')
})
