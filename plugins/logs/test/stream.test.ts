import { randomUUID } from 'node:crypto'
import { TestClient, until } from 'busbar/sdk/testing'
import { test } from 'tap'
import { takeAwayFromEngine } from '../../../lab/engine.js'
import { type EventReader, readEvents } from './event-reader.js'
import { at, type KeptLab, sharedPlatform } from './kept-lab.js'

takeAwayFromEngine()
const openLab = sharedPlatform()
const first = '11111111-1111-4111-8111-111111111111'
const second = '22222222-2222-4222-8222-222222222222'
const done = { event: 'done', data: 'log stream ended' }

const lines = (from: number, to: number) =>
  Array.from({ length: to - from }, (_, n) => ({ time: at(from + n), text: `line ${from + n}` }))
const texts = ({ events }: EventReader): string[] => events.map(({ data }) => data)
const expected = (from: number, to: number): string[] =>
  lines(from, to).map(({ time, text }) => `${time} ${text}`)

async function open(lab: KeptLab, query = '', headers: Record<string, string> = {}): Promise<EventReader> {
  lab.k.resetRateLimits()
  return readEvents(
    await new TestClient(lab.client.url, { ...lab.client.credential, ...headers }).open(`${lab.path}${query}`)
  )
}

const serves = async (lab: KeptLab, deploymentId: string) =>
  await lab.k.query('update applications.application set container_deployment_id = $1 where id = $2', [
    deploymentId,
    lab.applicationId
  ])

test('the stream has what the container of the application has written, each line with its time, and ends', async t => {
  const lab = await openLab()
  await lab.write(lab.containerOf('a'), first, lines(0, 3))
  await lab.write(lab.containerOf('b'), second, lines(3, 5), lines(5, 2500), lines(2500, 2501))
  await serves(lab, second)
  const stream = await open(lab)
  t.match(stream.response.headers, { 'content-type': 'text/event-stream', 'cache-control': 'no-cache' })
  await until(() => stream.isOver, 'its end')
  t.same(stream.events.at(-1), done)
  t.same(texts(stream).slice(0, -1), expected(3, 2501))
  t.same(stream.comments, [], 'one that ends by itself needs no sign of life')
})

test('without a container there is an error and the end, whatever is asked for', async t => {
  const lab = await openLab()
  for (const query of ['', '?follow=true', '?follow=false']) {
    const stream = await open(lab, query)
    await until(() => stream.isOver, 'its end')
    t.match(stream.events, [{ event: 'error', data: /no container/ }, done])
    t.equal(stream.events.length, 2)
  }
  await serves(lab, first)
  const silent = await open(lab)
  await until(() => silent.isOver, 'its end')
  t.same(silent.events, [done], 'one that has written nothing')
})

test('a stream that follows goes on across deployments, with a sign of life', async t => {
  const lab = await openLab()
  await lab.write(lab.containerOf('a'), first, lines(0, 3))
  await serves(lab, first)
  const stream = await open(lab, '?follow=true')
  await until(() => stream.events.length === 3, 'what was there')
  t.same(stream.comments, ['ping'], 'at once')
  await lab.write(lab.containerOf('a'), first, lines(3, 5))
  await until(() => stream.events.length === 5, 'what is written now')
  await lab.write(lab.containerOf('b'), second, lines(5, 3000))
  await until(() => stream.events.length === 3000, 'what the next container writes')
  t.same(texts(stream), expected(0, 3000))
  t.notOk(stream.isOver)
  stream.close()
})

test('who comes again with the id of the last line gets what stands behind it, each line once', async t => {
  const lab = await openLab()
  // All of one time, in chunks of any size.
  const same = Array.from({ length: 1200 }, (_, n) => ({ time: at(0), text: `line ${n}` }))
  await lab.write(lab.containerOf('a'), first, same.slice(0, 1), same.slice(1, 700))
  await lab.write(lab.containerOf('b'), second, same.slice(700))
  await serves(lab, first)
  const whole = await open(lab, '?follow=true', { 'last-event-id': '00000000-0000-8000-8000-000000000000' })
  await until(() => whole.events.length === 1200, 'all lines')
  whole.close()
  for (const index of [0, 1, 500, 698, 699, 700, 1198]) {
    const stream = await open(lab, '?follow=true', { 'last-event-id': whole.events[index]?.id ?? '' })
    await until(() => stream.events.length >= 1199 - index, 'the rest')
    t.same(stream.events, whole.events.slice(index + 1), `behind line ${index}`)
    stream.close()
  }
  const last = await open(lab, '', { 'last-event-id': whole.events.at(-1)?.id ?? '' })
  await until(() => last.isOver, 'its end')
  t.same(last.events, [done])
  // The last one is of no line that is kept, as after a database has been restored.
  for (const nonsense of ['x', '7', randomUUID(), 'ffffffff-ffff-8000-801f-ffffffffffff']) {
    const stream = await open(lab, '', { 'last-event-id': nonsense })
    await until(() => stream.isOver, 'its end')
    t.equal(stream.events.length, 701, `${nonsense} is as if it were not there`)
  }
})

test('a stream that follows an application ends when that is deleted', async t => {
  const lab = await openLab()
  await lab.write(lab.containerOf('a'), first, lines(0, 3))
  await serves(lab, first)
  const stream = await open(lab, '?follow=true')
  await until(() => stream.events.length === 3, 'what was there')
  t.equal((await lab.client.delete(lab.path.replace(/\/logs$/, ''))).status, 200)
  await until(() => stream.isOver, 'its end')
  t.same(stream.events.at(-1), done)
})

test('a stream ends when its reader may not see the project any more', async t => {
  const lab = await openLab()
  await lab.write(lab.containerOf('a'), first, lines(0, 1))
  await serves(lab, first)
  const { email } = await lab.k.user('bob')
  const members = `/api/projects/${lab.projectId}/members`
  await lab.client.put(members, { email, role: 'viewer' })
  const bob = await lab.k.as.session('bob')
  const stream = readEvents(await bob.open(`${lab.path}?follow=true`))
  await until(() => stream.events.length === 1, 'what was there')
  await lab.client.delete(`${members}/${bob.userId}`)
  await until(() => stream.isOver, 'its end')
  t.equal(stream.events.length, 1, 'it is told nothing of it')
})
