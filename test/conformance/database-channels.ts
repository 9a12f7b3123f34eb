import { requireDatabaseImages } from '../../lab/database-images.js'
import type { Claim } from './claims.js'
import { expect, unique } from './stage.js'

/** What becomes of a database, and what it writes. */
export const databaseClaims: readonly Claim[] = [
  {
    says: [
      'database-status:{databaseId} | status | object with database_id and status | project access',
      'container-logs:{sourceId} | log | runtime log lines; sourceId is an application id or a database id | project access'
    ],
    async holds(t, stage) {
      if (!(await requireDatabaseImages(t))) return
      const { owner, stranger } = stage.cast
      const path = `/api/projects/${stage.of.projectId}/databases`
      const { body: database } = expect(
        await stage.act(owner.session, 'POST', path, { name: unique('kept'), type: 'redis' }),
        202
      )
      const own = `${path}/${database.id as string}`
      const status = `database-status:${database.id as string}`
      const lines = `container-logs:${database.id as string}`
      const client = await stage.connect(owner.session)
      client.subscribe(status, lines)
      const strange = await stage.connect(stranger.session)
      strange.subscribe(status, lines)
      for (const channel of [status, lines]) await strange.refusal(channel)

      const running = await client.next(
        ({ channel, data }) => channel === status && data.status === 'running',
        'it runs',
        120_000
      )
      t.same(running, {
        channel: status,
        event: 'status',
        data: { database_id: database.id, status: 'running' }
      })
      const line = await client.next(({ channel }) => channel === lines, 'a line of it', 60_000)
      t.match(line, { event: 'log', data: { message: String } })
      expect(await stage.act(owner.session, 'POST', `${own}/stop`), 200)
      await client.next(
        ({ channel, data }) => channel === status && data.status === 'stopped',
        'it is stopped',
        60_000
      )
      t.equal(
        (await stage.act(owner.session, 'GET', own)).body.status,
        'stopped',
        'the row was written before'
      )
      const told = client.on(status).map(({ data }) => data.status as string)
      t.same(
        told.filter((one, at) => one === told[at - 1]),
        [],
        `only what has changed: ${told.join(' ')}`
      )
      expect(await stage.act(owner.session, 'DELETE', own), 200)
    }
  }
]
