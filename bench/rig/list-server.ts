/** The applications of a project as fast as they can be had without a platform: one query and JSON.stringify. */
import type { AddressInfo } from 'node:net'
import Fastify from 'fastify'
import pg from 'pg'
import { serveParent } from './child.js'

export interface ListReady {
  readonly port: number
}

const [, , connectionString = '', projectId = ''] = process.argv
const pool = new pg.Pool({ connectionString, max: 10 })
const fastify = Fastify({ logger: false })
fastify.get('/', async (_request, reply) => {
  const { rows } = await pool.query(
    'select * from applications.application where project_id = $1 order by created_at desc, id desc limit 50',
    [projectId]
  )
  return await reply.type('application/json; charset=utf-8').send(JSON.stringify(rows))
})
await fastify.listen({ port: 0, host: '127.0.0.1' })
process.on('SIGTERM', () => {
  process.exit()
})
serveParent({ port: (fastify.server.address() as AddressInfo).port } satisfies ListReady, {})
