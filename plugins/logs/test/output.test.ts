import { until } from 'busbar/sdk/testing'
import { test } from 'tap'
import { ended, openLab } from './logs-lab.js'

const deploymentId = '11111111-1111-4111-8111-111111111111'

test('whatever a container writes is kept as text, and told alike by history, stream and channel', async t => {
  const lab = await openLab(t)
  if (lab === undefined) return
  const application = await lab.application()
  await application.serves(deploymentId)
  const channel = `container-logs:${application.id}`
  const socket = await lab.k.socket(lab.client)
  socket.subscribe(channel)
  const stream = await application.stream('?follow=true')
  await until(() => stream.comments.length > 0, 'the stream')
  const container = await application.run(
    [
      'sleep 1',
      "printf 'a\\000b\\n\\033[31mred\\033[0m\\n10%%\\r100%%\\n\\n'",
      "printf '\\377\\376 not a character\\n'",
      'echo error: on stderr >&2',
      'sleep 0.2',
      'head -c 200000 /dev/urandom; echo',
      "head -c 10000000 /dev/zero | tr '\\0' z; echo",
      'echo the end'
    ].join('; '),
    deploymentId
  )
  await ended(lab, container)
  await until(() => stream.events.at(-1)?.data.endsWith('the end') === true, 'the last line')
  const whole = await application.whole()
  const of = (stream: string) => whole.filter(line => line.stream === stream)
  t.match(of('stdout').slice(0, 5), [
    { message: 'ab' },
    { message: '\u001b[31mred\u001b[0m' },
    { message: '100%' },
    { message: '' },
    { message: '\ufffd\ufffd not a character' }
  ])
  // The engine takes in each stream by itself.
  t.match(of('stderr'), [{ message: 'error: on stderr', level: 'error' }])
  t.match(whole.at(-1), { message: 'the end', container_id: container, deployment_id: deploymentId })
  const long = whole.filter(({ message = '' }) => /^z{100,}$/.test(message))
  t.equal(
    long.reduce((sum, { message = '' }) => sum + message.length, 0),
    10_000_000
  )
  t.ok(long.every(({ message = '' }) => message.length <= 16_384))
  for (const { message = '' } of whole) t.notMatch(message, /[\u0000-\u0008\u000a-\u001a\u007f]/)

  // The history is in the order of times, which of two streams at once need not be that in which the engine took them in.
  t.same(
    sorted(stream.events.map(({ id, data }) => ({ id, data }))),
    sorted(whole.map(line => ({ id: line.id, data: `${line.recorded_at} ${line.message}` }))),
    'the stream has the same'
  )
  await socket.next(frame => frame.data?.message === 'the end')
  t.same(
    sorted(socket.frames.map(({ data }) => data)),
    sorted(whole.map(({ source_id: _, source_type: __, ...line }) => line)),
    'and so has the channel'
  )
  stream.close()
  await socket.close()
})

test('the output of a container is followed over its restarts and into the next deployment', async t => {
  const lab = await openLab(t)
  if (lab === undefined) return
  const application = await lab.application()
  const socket = await lab.k.socket(lab.client)
  socket.subscribe(`container-logs:${application.id}`)
  const first = await application.run(
    'echo begin; trap "echo bye; exit 0" TERM; while true; do sleep 0.1; done'
  )
  const messages = async () => (await application.whole()).map(({ message }) => message)
  await until(async () => (await messages()).length === 1, 'its first line')
  await lab.runtime.stop(first, 10)
  await lab.runtime.start(first)
  await until(async () => (await messages()).length === 3, 'the lines of its second run')
  await lab.runtime.restart(first, 10)
  await until(async () => (await messages()).length === 5, 'the lines of its third run')
  const second = await application.run('echo next')
  await ended(lab, second)
  await lab.runtime.stop(first, 10)
  await lab.runtime.remove(first)
  await until(async () => (await messages()).length === 7, 'all lines')
  t.same(
    (await messages()).filter(message => message !== 'next'),
    ['begin', 'bye', 'begin', 'bye', 'begin', 'bye']
  )
  await until(() => socket.frames.length === 7, 'the same on the channel')
  t.match((await lab.client.get(`${application.path}/logs/sessions`)).body, [
    { container_id: first, line_count: 6 },
    { container_id: second, line_count: 1 }
  ])
  await socket.close()
})

test('what was written while the platform was off is kept when it is on again, of those that have ended too', async t => {
  const lab = await openLab(t)
  if (lab === undefined) return
  const application = await lab.application()
  const container = await application.run(
    'echo one; while [ ! -e /tmp/go ]; do sleep 0.05; done; echo two; echo three'
  )
  await until(async () => (await application.whole()).length === 1, 'the first line')
  const { runtime } = lab
  await runtime.exec(container, ['true'], { onLine: () => {}, signal: new AbortController().signal })
  await lab.k.disable('logs')
  await runtime.exec(container, ['touch', '/tmp/go'], {
    onLine: () => {},
    signal: new AbortController().signal
  })
  await ended(lab, container)
  await lab.restart()
  await lab.k.enable('logs')
  await until(async () => (await application.whole()).length === 3, 'the other lines')
  t.same(
    (await application.whole()).map(({ message }) => message),
    ['one', 'two', 'three']
  )
})

const sorted = <T extends { readonly id?: string }>(lines: readonly T[]): T[] =>
  lines.toSorted((a, b) => ((a.id ?? '') < (b.id ?? '') ? -1 : 1))
