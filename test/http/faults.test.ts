import { setTimeout as sleep } from 'node:timers/promises'
import {
  allow,
  definePlugin,
  event,
  kernel,
  list,
  nullable,
  object,
  Problem,
  problemTable,
  type Reply,
  reply,
  Type
} from 'busbar/sdk'
import { createTestKernel, type TestKernel, until } from 'busbar/sdk/testing'
import { test } from 'tap'

const open = allow.public('a test')
const answer = object({
  name: Type.String(),
  size: Type.Integer(),
  parts: list(Type.String()),
  note: nullable(Type.String())
})
const good = { name: 'a', size: 1, parts: ['b'], note: null }
const happened = event<{ n: number }>('faulty.happened')
const wrong: Readonly<Record<string, unknown>> = {
  null: null,
  undefined,
  text: 'some text',
  number: 7,
  'an object': { a: 1 }
}
let thrown: unknown

/** What is thrown is nothing that has a message. */
const faulty = {
  manifest: { id: 'faulty', grants: ['jobs', 'events', 'database'] },
  definition: definePlugin({
    id: 'faulty',
    needs: { jobs: kernel.jobs, events: kernel.events, db: kernel.database },
    start: ({ use }) => ({ ...use }),
    routes(route) {
      route({
        method: 'GET',
        url: '/api/faulty/throws',
        summary: 's',
        access: open,
        handler: () => {
          throw thrown
        }
      })
      route({
        method: 'GET',
        url: '/api/faulty/rejects',
        summary: 's',
        access: open,
        handler: async () => {
          await sleep(1)
          throw thrown
        }
      })
      route({
        method: 'POST',
        url: '/api/faulty/audited',
        summary: 's',
        access: allow.token('write', { project: 'none' }),
        idempotent: true,
        audit: { action: 'fault', resource: 'fault' },
        handler: async () => {
          throw thrown
        }
      })
      const answers = (name: string, value: () => unknown): void => {
        route({
          method: 'GET',
          url: `/api/faulty/answers/${name}`,
          summary: 's',
          access: open,
          schema: { response: { 200: answer, 204: null } },
          handler: value as () => Reply<typeof good>
        })
      }
      answers('good', () => good)
      answers('nothing', () => undefined)
      answers('null', async () => null)
      answers('null-reply', () => reply(200, null))
      answers('text', () => 'some text')
      answers('bytes', () => Buffer.from('{}'))
      answers('hollow', () => ({ ...good, name: null }))
      answers('hollow-size', () => ({ ...good, size: undefined }))
      answers('hollow-parts', () => ({ ...good, parts: [null] }))
      answers('no-content', () => reply(204, null))
      route({
        method: 'POST',
        url: '/api/faulty/work',
        summary: 's',
        access: open,
        handler: async (_request, { jobs, events, db }) => {
          await jobs.enqueue('fail', {})
          await db.transaction(async tx => {
            await events.emit(happened, { n: 1 }, tx)
          })
          return { ok: true }
        }
      })
    },
    channels(channel) {
      channel({
        name: 'faulty',
        summary: 's',
        events: { x: Type.Any() },
        access: allow.token('read', { project: 'none' }),
        source: () => {
          throw thrown
        }
      })
    },
    sockets(socket) {
      socket({
        url: '/api/ws/faulty',
        summary: 's',
        access: allow.token('read', { project: 'none' }),
        handler: async () => {
          throw thrown
        }
      })
      socket({
        url: '/api/ws/faulty-accept',
        summary: 's',
        access: allow.token('read', { project: 'none' }),
        accept: () => {
          throw thrown
        },
        handler: async () => {}
      })
    },
    jobs(job) {
      job({
        name: 'fail',
        attempts: 1,
        run: async () => {
          throw thrown
        }
      })
    },
    events(on) {
      on(happened, () => {
        throw thrown
      })
    },
    health: () => {
      throw thrown
    }
  })
}

let k: TestKernel
const lines: string[] = []
const faultsOf = (): Array<{ plugin?: string; msg: string }> =>
  lines
    .filter(line => line.includes('something that is not an error was thrown'))
    .map(line => JSON.parse(line))

test('a platform with a faulty plugin starts', async t => {
  k = await createTestKernel({
    inline: [faulty],
    onLog: line => {
      lines.push(line)
    }
  })
  t.ok(k.url)
})

for (const [what, value] of Object.entries(wrong)) {
  test(`${what}, thrown by a handler, is 500 and logged with the plugin`, async t => {
    thrown = value
    for (const path of ['/api/faulty/throws', '/api/faulty/rejects']) {
      lines.length = 0
      t.match(await k.as.anonymous().get(path), {
        status: 500,
        body: { error: 'something went wrong on our side; the log has the details', code: 'E_INTERNAL' }
      })
      t.match(faultsOf(), [{ plugin: 'faulty' }])
    }
    const token = await k.as.token('write')
    t.match(
      await token.post(
        '/api/faulty/audited',
        {},
        { headers: { 'idempotency-key': what.replaceAll(' ', '-') } }
      ),
      { status: 500, body: { code: 'E_INTERNAL' } }
    )
  })

  test(`${what}, thrown by a job, an event's handler, a channel's source, a socket and a health check, is a fault of the plugin`, async t => {
    thrown = value
    lines.length = 0
    const admin = await k.as.session()
    t.match((await admin.get('/api/plugins/faulty')).body, {
      state: 'degraded',
      reason: /not an error was thrown/
    })
    t.equal((await k.as.anonymous().post('/api/faulty/work')).status, 200)
    const reader = await k.as.token('read')
    const socket = await k.socket(reader, '/api/ws/faulty')
    const hub = await k.socket(reader)
    hub.send(JSON.stringify({ action: 'subscribe', channel: 'faulty' }))
    // A job, an event, a socket and a source.
    t.ok(
      await until(() => faultsOf().length >= 4, 'four faults are logged'),
      faultsOf()
        .map(({ msg }) => msg)
        .join('\n')
    )
    t.same([...new Set(faultsOf().map(({ plugin }) => plugin))], ['faulty'])
    await t.rejects(k.socket(reader, '/api/ws/faulty-accept'), /500/)
    socket.close()
    hub.close()
    t.equal((await k.as.anonymous().get('/healthz')).status, 200)
  })
}

test('a handler that answers nothing, or less than its schema declares, is a fault', async t => {
  t.match(await k.as.anonymous().get('/api/faulty/answers/good'), { status: 200, body: good })
  t.match(await k.as.anonymous().get('/api/faulty/answers/no-content'), { status: 204, body: null })
  for (const name of [
    'nothing',
    'null',
    'null-reply',
    'text',
    'bytes',
    'hollow',
    'hollow-size',
    'hollow-parts'
  ]) {
    lines.length = 0
    t.match(
      await k.as.anonymous().get(`/api/faulty/answers/${name}`),
      { status: 500, body: { code: 'E_INTERNAL' } },
      name
    )
    t.ok(
      lines.some(line => line.includes('"plugin":"faulty"') && line.includes('a request failed')),
      `${name} is logged`
    )
  }
})

test('a plugin that throws no error while it starts has failed with a reason', async t => {
  const starting = {
    manifest: { id: 'starting' },
    definition: definePlugin({
      id: 'starting',
      start: (): object => {
        throw null
      }
    })
  }
  const other = await createTestKernel({ inline: [starting] })
  t.teardown(() => other.close())
  t.match((await (await other.as.session()).get('/api/plugins/starting')).body, {
    state: 'retrying',
    reason: /not an error was thrown: null/
  })
})

test('problems stay what they are', async t => {
  thrown = new Problem(418, 'E_TEAPOT', 'I am a teapot')
  t.match(await k.as.anonymous().get('/api/faulty/rejects'), { status: 418, body: { code: 'E_TEAPOT' } })
  t.same(k.undeclaredAnswers(), ['GET /api/faulty/rejects 418'])
})

test('the platform stops', async t => {
  await k.close()
  t.pass()
})

test('a problem of any length is answered with as much of it as a reader needs', async t => {
  const wide = new Problem(409, 'E_WIDE', 'w'.repeat(2_000_000))
  const problems = problemTable({ long: [409, 'E_WIDE', 'w'] })
  const deep = new Problem(409, 'E_DEEP', 'deep', { list: Array(600_000).fill('x') })
  const definition = definePlugin({
    id: 'long',
    routes(route) {
      for (const [name, problem] of Object.entries({ wide, deep }))
        route({
          method: 'GET',
          url: `/api/long/${name}`,
          summary: 's',
          access: open,
          problems: [problems.long],
          handler: () => {
            throw problem
          }
        })
    }
  })
  const k = await createTestKernel({ inline: [{ manifest: { id: 'long' }, definition }] })
  t.teardown(() => k.close())
  const { status, body } = await k.as.anonymous().get('/api/long/wide')
  t.match({ status, body }, { status: 409, body: { code: 'E_WIDE', error: /^w{100}/ } })
  t.ok(body.error.length < 10_100)
  t.match(await k.as.anonymous().get('/api/long/deep'), { status: 500, body: { code: 'E_INTERNAL' } })
})
