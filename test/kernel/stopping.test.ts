import { Agent, get } from 'node:http'
import { connect } from 'node:net'
import { setTimeout as sleep } from 'node:timers/promises'
import { allow, definePlugin, kernel, type SseFrame, sse } from 'busbar/sdk'
import { createTestKernel, until } from 'busbar/sdk/testing'
import { test } from 'tap'

const forever = async (): Promise<never> => await new Promise<never>(() => {})
const open = allow.public('a test')
let held = 0
let jobs = 0

/** Ends nothing: transactions, jobs, singletons, streams, its own stop. */
const stubborn = {
  manifest: { id: 'stubborn', grants: ['database', 'jobs'] },
  definition: definePlugin({
    id: 'stubborn',
    needs: { db: kernel.database, jobs: kernel.jobs },
    start: ({ use, onStop }) => {
      onStop(forever)
      return { ...use }
    },
    routes(route) {
      route({
        method: 'POST',
        url: '/api/stubborn/hold',
        summary: 's',
        access: open,
        handler: async (_request, self) => {
          await self.jobs.enqueue('hang', {})
          for (let n = 0; n < 10; n++)
            void self.db
              .transaction(async () => {
                held++
                await forever()
              })
              .catch(() => {})
          return { ok: true }
        }
      })
      route({
        method: 'GET',
        url: '/api/stubborn/ask',
        summary: 's',
        access: open,
        handler: async (_request, { db }) => await db.sql('select 1 as one')
      })
      route({
        method: 'GET',
        url: '/api/stubborn/stream',
        summary: 's',
        access: open,
        handler: () =>
          sse(
            (async function* (): AsyncGenerator<SseFrame> {
              yield { data: 'x' }
              await forever()
            })()
          )
      })
    },
    jobs(job) {
      job({
        name: 'hang',
        attempts: 1,
        run: async () => {
          jobs++
          await forever()
        }
      })
    },
    singletons(singleton) {
      singleton({ name: 'hang', run: forever })
    }
  })
}

test('a plugin that ends nothing keeps nobody else from working, and the platform from stopping only for so long, and is named', async t => {
  const lines: string[] = []
  const k = await createTestKernel({
    inline: [stubborn],
    onLog: line => {
      lines.push(line)
    }
  })
  const admin = await k.as.session()
  t.equal((await k.as.anonymous().post('/api/stubborn/hold')).status, 200)
  t.ok(await until(() => held > 0 && jobs > 0, 'a transaction and a job are held'))
  const stream = await k.as.anonymous().open('/api/stubborn/stream')
  stream.resume()

  const own = k.as.anonymous().get('/api/stubborn/ask')
  for (let n = 0; n < 5; n++) {
    t.match(await k.as.anonymous().get('/healthz'), { status: 200, body: { checks: { database: 'ok' } } })
    t.equal((await admin.get('/api/projects')).status, 200)
    t.equal((await (await k.as.session('member')).get('/api/projects')).status, 200)
  }
  t.match(await own, {
    status: 503,
    body: {
      code: 'E_DATABASE_BUSY',
      error: /the plugin "stubborn" has all of its 6 database connections in use/
    }
  })

  const startedAt = performance.now()
  await k.stop()
  const seconds = (performance.now() - startedAt) / 1000
  t.ok(seconds < 30, `it stopped after ${seconds.toFixed(1)} s`)
  t.ok(
    lines.some(line => line.includes('the plugin \\"stubborn\\" did not end')),
    'the log names it'
  )
  await k.close()
})

test('a platform that stops tells a client so, and not that its plugins are off', async t => {
  let release = (): void => {}
  const released = new Promise<void>(resolve => {
    release = resolve
  })
  const lines: string[] = []
  const k = await createTestKernel({
    onLog: line => {
      lines.push(line)
    },
    inline: [
      {
        manifest: { id: 'slow' },
        definition: definePlugin({
          id: 'slow',
          start: ({ onStop }) => {
            onStop(async () => await released)
            return {}
          },
          routes(route) {
            route({
              method: 'GET',
              url: '/api/slow',
              summary: 's',
              access: open,
              handler: () => ({ ok: true })
            })
            route({
              method: 'GET',
              url: '/api/slow/wait',
              summary: 's',
              access: open,
              handler: async () => {
                await sleep(1_000)
                return { text: 'a'.repeat(8_000_000) }
              }
            })
          }
        })
      }
    ]
  })
  const agent = new Agent({ keepAlive: true, maxSockets: 1 })
  t.teardown(async () => {
    agent.destroy()
    release()
    await k.close()
  })
  const ask = async (): Promise<number | string> =>
    await new Promise(resolve => {
      get(`${k.url}/api/slow`, { agent }, response => {
        response.resume().on('end', () => resolve(response.statusCode ?? 0))
      }).on('error', (error: NodeJS.ErrnoException) => resolve(error.code ?? error.message))
    })
  t.equal(await ask(), 200)
  // Its answer is given, and its connection has nothing more to do, while the platform stops.
  const waiting = connect(k.port, '127.0.0.1')
  waiting.write('GET /api/slow/wait HTTP/1.1\r\nHost: a\r\n\r\nGET /api/slow HTTP/1.1\r\nHost: a\r\n\r\n')
  t.ok(await until(() => k.inFlight('slow') === 1, 'a request is under way'))
  const stopped = k.stop()
  const answers: Array<number | string> = []
  for (const end = performance.now() + 500; performance.now() < end; ) answers.push(await ask())
  t.same(
    answers.filter(answer => answer === 404),
    [],
    'while its plugins stop'
  )
  t.match(answers.at(-1), /503|ECONN/)
  release()
  const startedAt = performance.now()
  let said = ''
  for await (const chunk of waiting) said += String(chunk)
  t.ok(said.length > 8_000_000, 'an answer is sent whole')
  t.match(
    said.slice(8_000_000),
    /HTTP\/1\.1 503 [\s\S]*retry-after: \d[\s\S]*E_STOPPING/,
    'what came after it is refused'
  )
  await stopped
  t.ok(performance.now() - startedAt < 4_000, 'no connection is waited for that has had its answer')
  t.notMatch(lines.join(''), 'a request failed before it reached a plugin')
})
