/** PostgreSQL and the engine are killed while people look: what is open goes on afterwards, and nothing grows. */
import { mkdtemp, readFile, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createTestKernel, until } from 'busbar/sdk/testing'
import { pino } from 'pino'
import { type Test, test } from 'tap'
import { startEmbedded, stopEmbedded } from '../../../embedded-postgres/index.js'
import { requireSecondEngine, startSecondEngine } from '../../../lab/second-engine.js'
import { openEvents } from './event-reader.js'
import { makeProject, runApplication } from './metrics-lab.js'

/** A PostgreSQL of the test's own, which keeps what it has committed. */
async function startServer(t: Test) {
  const directory = await mkdtemp(join(tmpdir(), 'busbar-metrics-database-'))
  const options = { directory, log: pino({ level: 'silent' }), detached: true }
  const { url } = await startEmbedded(options)
  t.teardown(async () => {
    await stopEmbedded(directory)
    await rm(directory, { recursive: true, force: true })
  })
  return {
    url,
    kill: async () => {
      const [pid] = (await readFile(join(directory, 'pg18', 'postmaster.pid'), 'utf8')).split('\n')
      process.kill(Number(pid), 'SIGKILL')
    },
    start: async () => {
      await startEmbedded(options)
    }
  }
}

test('kill -9 of PostgreSQL and of the engine', async t => {
  if (!(await requireSecondEngine(t))) return
  const engine = await startSecondEngine({ images: ['busybox:lab'], liveRestore: true })
  t.teardown(() => engine.close())
  const server = await startServer(t)
  const directory = await mkdtemp(join(tmpdir(), 'busbar-metrics-'))
  t.teardown(async () => await rm(directory, { recursive: true, force: true }))
  const k = await createTestKernel({
    state: { database: { url: server.url, drop: async () => {} }, directory },
    environment: { ...engine.environment, BUSBAR_SUBNETS: '10.203.0.0/16' }
  })
  t.teardown(() => k.close())
  const admin = await k.as.session()
  const app = await runApplication(k, admin, await makeProject(admin))
  await t.test('with the engine away the streams are silent, and go on when it is back', async t => {
    const events = await openEvents(admin, `${app.path}/metrics/stream`)
    const socket = await k.socket(admin)
    socket.subscribe(`metrics:app:${app.id}`)
    await until(() => events.data().length > 0 && socket.frames.length > 0, 'a point')
    await engine.kill()
    await until(async () => {
      k.resetRateLimits()
      const answer = await admin.get(`/api/projects/${app.projectId}/metrics`)
      return answer.status === 503 && answer.body.code === 'E_ENGINE_UNREACHABLE'
    }, 'a refusal')
    await engine.start()
    const [points, messages] = [events.data().length, socket.frames.length]
    await until(
      () => events.data().length > points && socket.frames.length > messages,
      'further points',
      120_000
    )
    t.equal(events.hasEnded(), false)
    t.equal(socket.frames.filter(({ event }) => event !== 'metrics').length, 0)
    events.close()
    await socket.close()
  })

  await t.test(
    'with PostgreSQL away what is open stays, the machine is measured, and what was is written afterwards',
    async t => {
      const channels = ['metrics:host', `metrics:app:${app.id}`]
      const [host, ofApp] = await Promise.all(
        ['/api/metrics/host/stream', `${app.path}/metrics/stream`].map(
          async path => await openEvents(admin, path)
        )
      )
      const socket = await k.socket(admin)
      for (const channel of channels) socket.subscribe(channel)
      const counts = (): number[] => [
        host?.data().length ?? 0,
        ofApp?.data().length ?? 0,
        ...channels.map(channel => socket.frames.filter(frame => frame.channel === channel).length)
      ]
      await until(() => counts().every(count => count > 0), 'points of all')
      await server.kill()
      const killedAt = Date.now()
      const [before = 0] = counts()
      await until(() => (counts()[0] ?? 0) >= before + 5, 'points of the machine without a database')
      await server.start()
      const backAt = Date.now()
      // Points are kept by the second.
      const from = new Date(killedAt - 1000).toISOString()
      const rows = await until(
        async () => {
          k.resetRateLimits()
          const { body } = await admin.get(`/api/metrics/host?from=${from}`)
          const isOfAfterwards = ({ recorded_at: at }: { recorded_at: string }): boolean =>
            Date.parse(at) > backAt + 2000
          return Array.isArray(body) && body.some(isOfAfterwards) && (body as any[])
        },
        'points of afterwards',
        120_000
      )
      // The stream has told what was measured.
      const secondOf = ({ recorded_at: at }: { recorded_at: string }): number =>
        Math.floor(Date.parse(at) / 1000)
      const written = new Set(rows.map(secondOf))
      const measured = (host?.data() ?? []).filter(({ recorded_at: at }) => {
        const time = Date.parse(at)
        return time > killedAt && time < backAt
      })
      t.ok(measured.length >= 3, `${measured.length} points`)
      t.same(
        measured.filter(point => !written.has(secondOf(point))),
        [],
        'all of them are written'
      )

      const back = counts()
      await until(
        () => counts().every((count, at) => count > (back[at] ?? 0)),
        'further points of all',
        60_000
      )
      t.equal(host?.hasEnded(), false)
      t.equal(ofApp?.hasEnded(), false)
      t.equal(socket.closeCode, undefined)
      host?.close()
      ofApp?.close()
      await socket.close()
    }
  )
})
