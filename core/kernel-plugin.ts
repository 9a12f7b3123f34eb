import {
  type AnyPlugin,
  allow,
  definePlugin,
  described,
  named,
  object,
  reply,
  type TSchema,
  Type
} from 'busbar/sdk'
import type { KeptDescription } from './declarations/kept-description.js'
import type { Health } from './http/health.js'
import { pluginRoutes } from './plugins/plugin-routes.js'
import type { Reconciler } from './plugins/reconciler.js'

export interface KernelSelf {
  readonly version: string
  readonly reconciler: Reconciler
  /** The description of the routes now served, as JSON text, and which it is. */
  readonly openapi: () => KeptDescription
  /** That of the channels. */
  readonly asyncapi: () => KeptDescription
  readonly health: Health
  readonly isUpdating: () => boolean
}

const group = 'Public'

/** The routes of the kernel itself, declared like those of any plugin and recorded by the same recorder. */
export const kernelPlugin: AnyPlugin = definePlugin<{}, TSchema, KernelSelf>({
  id: 'kernel',
  routes(route) {
    pluginRoutes(route)
    route({
      method: 'GET',
      url: '/api/version',
      operationId: 'GetVersion',
      summary: 'Get Version',
      description: 'Clients ask for it to see whether they still fit.',
      group,
      access: allow.public('clients ask before they have a credential'),
      schema: {
        response: { 200: version }
      },
      handler: (_request, self) => ({ version: self.version, updating: self.isUpdating() })
    })
    route({
      method: 'GET',
      url: '/api/openapi.json',
      operationId: 'GetOpenAPI',
      summary: 'Get OpenAPI Description',
      description:
        'The description that you are reading: of what is served at the moment, so that operations of plugins that are off are not in it.',
      group,
      access: allow.public('the description holds nothing but the shape of the API'),
      version: (_request, { openapi }) => openapi().version,
      handler: (_request, { openapi }) => descriptionReply(openapi())
    })
    route({
      method: 'GET',
      url: '/api/asyncapi.json',
      operationId: 'GetAsyncAPI',
      summary: 'Get AsyncAPI Description',
      description:
        'The AsyncAPI 3.0 description of what can be heard live at `/api/ws`: channels, and the schemas of their messages. Those of plugins that are off are not in it.',
      group,
      access: allow.public('the description holds nothing but the shape of the API'),
      version: (_request, { asyncapi }) => asyncapi().version,
      handler: (_request, { asyncapi }) => descriptionReply(asyncapi())
    })
    route({
      method: 'GET',
      url: '/healthz',
      operationId: 'Health',
      summary: 'Get Health',
      description:
        'For load balancers and container engines: 200 when everything that the platform needs answers, otherwise 503 with the same body.',
      group,
      access: allow.public('load balancers and container engines ask without a credential'),
      schema: { response: { 200: healthReport, 503: healthReport } },
      handler: async (_request, { health }) => {
        const { healthy, checks } = await health.report()
        return reply(healthy ? 200 : 503, { healthy, checks: { ...checks } })
      }
    })
  }
})

const descriptionReply = ({ text }: KeptDescription) =>
  reply(200, text, { headers: { 'content-type': 'application/json; charset=utf-8' } })

const version = named(
  'Version',
  object({
    version: described(Type.String(), 'The release that runs, a semantic version.'),
    updating: described(Type.Boolean(), 'Whether the platform is being updated, and will soon start anew.')
  }),
  { description: 'Which release of the platform this is.' }
)
const healthReport = named(
  'HealthReport',
  object({
    healthy: described(Type.Boolean(), 'Whether everything answers that the platform cannot serve without.'),
    checks: described(
      Type.Record(Type.String(), Type.String()),
      'Each check by name, those of plugins too: `ok`, `ok (3 containers)`, or `unhealthy: …` with the reason. A plugin that is unhealthy does not make the platform so.'
    )
  }),
  { description: 'How the platform is.' }
)
