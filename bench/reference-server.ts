/**
 * The rungs of the ladder below the platform: the same project from the same table, each rung with one
 * thing more than the one before. Rung `knex` is what the platform is compared with.
 */
import { createServer, type IncomingMessage } from 'node:http'
import type { AddressInfo } from 'node:net'
import { Type } from 'busbar/sdk'
import Fastify, { type FastifyInstance } from 'fastify'
import knex from 'knex'
import pg from 'pg'
import { project } from '../plugins/projects/schemas.js'
import type { Rung } from './requests.js'
import { serveParent } from './rig/child.js'

export interface ReferenceReady {
  readonly port: number
}

const connections = 10
const columns = ['id', 'name', 'slug', 'user_id', 'server_id', 'shared', 'created_at', 'updated_at']

/** As the table has it: what the caller may do with it is the platform's to know. */
const answer = Type.Omit(project, ['my_role'])

const [, , rung, databaseUrl = '', projectId = ''] = process.argv
const connectionString = databaseUrl
const pool = new pg.Pool({ connectionString, max: connections })
const database = knex.knex({
  client: 'pg',
  connection: { connectionString },
  pool: { min: 0, max: connections }
})
const {
  rows: [row]
} = await pool.query(`select ${columns.join(', ')} from projects.project where id = $1`, [projectId])

const find: Readonly<Record<Exclude<Rung, 'http'>, (id: string) => Promise<unknown>>> = {
  fastify: async () => row,
  pg: async id =>
    (
      await pool.query(
        `select ${columns.join(', ')} from projects.project where id = $1 and deleting_at is null`,
        [id]
      )
    ).rows[0],
  knex: async id =>
    await database('project')
      .withSchema('projects')
      .select(columns)
      .where({ id })
      .whereNull('deleting_at')
      .first()
}

const port = rung === 'http' ? await serveBare() : await serveFastify(find[rung as Exclude<Rung, 'http'>])
process.on('SIGTERM', () => {
  process.exit()
})
serveParent({ port } satisfies ReferenceReady, {})

async function serveBare(): Promise<number> {
  const server = createServer((_request: IncomingMessage, response) => {
    const body = Buffer.from(JSON.stringify(row))
    response.writeHead(200, {
      'content-type': 'application/json; charset=utf-8',
      'content-length': body.length
    })
    response.end(body)
  })
  await new Promise<void>(resolve => {
    server.listen(0, '127.0.0.1', resolve)
  })
  return (server.address() as AddressInfo).port
}

async function serveFastify(read: (id: string) => Promise<unknown>): Promise<number> {
  const fastify: FastifyInstance = Fastify({ logger: false })
  fastify.get<{ Params: { projectId: string } }>(
    '/api/projects/:projectId',
    { schema: { response: { 200: answer } } },
    async request => await read(request.params.projectId)
  )
  await fastify.listen({ port: 0, host: '127.0.0.1' })
  return (fastify.server.address() as AddressInfo).port
}
