import { mkdtemp, readFile, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { until } from 'busbar/sdk/testing'
import { pino } from 'pino'
import { test } from 'tap'
import { startEmbedded, stopEmbedded } from '../../../embedded-postgres/index.js'
import { requireEngine } from '../../../lab/engine.js'
import { isKeptWhole, jumps, openLab, outage, steady } from './logs-lab.js'

const deploymentId = '11111111-1111-4111-8111-111111111111'

test('kill -9 of PostgreSQL while a container writes: all comes when it is back, and streams go on', async t => {
  if (!(await requireEngine(t))) return
  const directory = await mkdtemp(join(tmpdir(), 'busbar-logs-database-'))
  const options = { directory, log: pino({ level: 'silent' }), detached: true }
  const { url } = await startEmbedded(options)
  t.teardown(async () => {
    await stopEmbedded(directory)
    await rm(directory, { recursive: true, force: true })
  })
  const home = await mkdtemp(join(tmpdir(), 'busbar-logs-database-'))
  t.teardown(async () => await rm(home, { recursive: true, force: true }))
  const lab = await openLab(t, { state: { database: { url, drop: async () => {} }, directory: home } })
  if (lab === undefined) return
  const application = await lab.application()
  await application.serves(deploymentId)
  const stream = await application.stream('?follow=true')
  const container = await application.run(steady(4000), deploymentId)
  for (let round = 1; round <= 2; round++) {
    await until(() => stream.events.length > round * 800, 'lines')
    const [pid] = (await readFile(join(directory, 'pg18', 'postmaster.pid'), 'utf8')).split('\n')
    process.kill(Number(pid), 'SIGKILL')
    await outage(1500)
    await startEmbedded(options)
  }
  await isKeptWhole(t, lab, application, container, 4000)
  await until(() => stream.events.length >= 4000 || stream.isOver, 'the stream')
  t.same(jumps(stream.events.map(({ data }) => data)), [])
  t.equal(stream.events.length, 4000)
  stream.close()
})
