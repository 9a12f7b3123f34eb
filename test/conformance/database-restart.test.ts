/** The database goes away and comes back, of two processes with sockets at both. */
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { pino } from 'pino'
import { test } from 'tap'
import { startEmbedded } from '../../embedded-postgres/index.js'
import { startInstallation } from './installation.js'
import { Stage } from './stage.js'

/** As it stands in `events.md`. */
export const claimed =
  'Sockets outlast a restart of the database, and everything is heard again without a restart of the platform.'

test(claimed, async t => {
  const directory = await mkdtemp(join(tmpdir(), 'busbar-restart-'))
  const start = async () => await startEmbedded({ directory, log: pino({ level: 'silent' }), fsync: false })
  let server = await start()
  t.teardown(async () => {
    await server.stop()
    await rm(directory, { recursive: true, force: true })
  })
  const installation = await startInstallation({ processes: 2, databaseUrl: server.url })
  t.teardown(async () => {
    await installation.close()
  })
  const set = await Stage.set(installation)
  const stage = set.at({ name: 'with sockets at both', acting: 0, listening: [0, 1] })
  t.teardown(async () => {
    await stage.clear()
  })
  const said = 'x:speaker:said'
  const own = `x:speaker:app:${stage.of.applicationId}`
  const clients = [
    await stage.connect(stage.cast.owner.session),
    await stage.connect(stage.cast.owner.session)
  ]
  for (const client of clients) await stage.hears(client, said)
  await server.stop()
  // What is published in one process reaches its own subscribers all the same.
  await stage.say(said, 'while it is away')
  await clients[0]?.next(({ data }) => data === 'while it is away', 'the word')
  for (const client of clients) client.unsubscribe('nowhere')
  server = await start()
  for (const client of clients) {
    await stage.stillHears(client, said)
    t.equal(client.end, undefined, 'the socket is the same')
  }
  await stage.waits(async () => {
    for (const { url } of installation.processes) {
      const { status } = await stage.act(
        stage.cast.owner.session,
        'GET',
        `/api/projects/${stage.of.projectId}/applications/${stage.of.applicationId}`,
        undefined,
        url
      )
      if (status !== 200) return false
    }
    return true
  }, 'both processes answer again')
  for (const client of clients) await stage.hears(client, own)
})
