/** As many routes as the platform has, on a bare fastify without schemas, over an open PostgreSQL. */
import Fastify from 'fastify'
import knex from 'knex'

const [, , databaseUrl = '', routes = '[]'] = process.argv
const startedAt = performance.now()
const cpuBefore = process.cpuUsage()
const database = knex.knex({ client: 'pg', connection: { connectionString: databaseUrl } })
await database.raw('select 1')
const fastify = Fastify({ logger: false })
for (const [method, url] of JSON.parse(routes) as Array<[method: 'GET', url: string]>) {
  fastify.route({ method, url, handler: async () => ({ ok: true }) })
}
await fastify.listen({ port: 0, host: '127.0.0.1' })
const ms = performance.now() - startedAt
const cpu = process.cpuUsage(cpuBefore)
console.log(`serves after ${JSON.stringify({ ms, cpuMs: (cpu.user + cpu.system) / 1000 })}`)
process.on('SIGTERM', () => {
  process.exit()
})
