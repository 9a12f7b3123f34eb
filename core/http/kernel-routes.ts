import { allow, definePlugin, object, reply, Type, type AnyPlugin, type Contributions, type TSchema } from 'busbar/sdk'
import { pluginRoutes } from '../plugins/plugin-routes.js'
import type { Reconciler } from '../plugins/reconciler.js'
import { withDeadline } from '../clock/waits.js'

export interface KernelFace {
  readonly version: string
  readonly reconciler: Reconciler
  /** The description of the routes now served, as JSON text. */
  readonly openapi: () => string
  /** What the platform cannot serve without. */
  readonly vitalChecks: Readonly<Record<string, () => Promise<string>>>
  /** What plugins contribute: reported, but a missing engine does not make the platform unhealthy. */
  readonly contributedChecks: Contributions<{ check(): Promise<string> }>
}

const checkLimitMs = 3_000
const group = 'Public'

/** The routes of the kernel itself, declared like those of any plugin and recorded by the same recorder. */
export const kernelPlugin: AnyPlugin = definePlugin<{}, TSchema, KernelFace>({
  id: 'kernel',
  routes (route) {
    pluginRoutes(route)
    route({
      method: 'GET', url: '/api/version', summary: 'Get Version', group,
      access: allow.public('clients ask before they have a credential'),
      schema: { response: { 200: object({ version: Type.String(), updating: Type.Boolean() }) } },
      handler: (_request, { version }) => ({ version, updating: false })
    })
    route({
      method: 'GET', url: '/api/openapi.json', summary: 'Get OpenAPI Description', group,
      access: allow.public('the description holds nothing but the shape of the API'),
      handler: (_request, { openapi }) => reply(200, openapi(), { headers: { 'content-type': 'application/json; charset=utf-8' } })
    })
    route({
      method: 'GET', url: '/healthz', summary: 'Get Health', group,
      access: allow.public('load balancers and container engines ask without a credential'),
      schema: { response: { 200: health, 503: health } },
      handler: async (_request, face) => {
        const vital = await runChecks(Object.entries(face.vitalChecks).map(([name, check]) => ({ name, check })))
        const contributed = await runChecks(face.contributedChecks.entries().map(({ key, value }) => ({ name: key, check: async () => await value.check() })))
        const healthy = Object.values(vital).every(result => !result.startsWith('unhealthy'))
        return reply(healthy ? 200 : 503, { healthy, checks: { ...vital, ...contributed } })
      }
    })
  }
})

const health = object({ healthy: Type.Boolean(), checks: Type.Record(Type.String(), Type.String()) })

async function runChecks (checks: ReadonlyArray<{ name: string, check: () => Promise<string> }>): Promise<Record<string, string>> {
  const results = await Promise.all(checks.map(async ({ name, check }) => {
    try {
      return [name, await withDeadline(check(), checkLimitMs, 'the check')] as const
    } catch (error) {
      return [name, `unhealthy: ${(error as Error).message}`] as const
    }
  }))
  return Object.fromEntries(results)
}
