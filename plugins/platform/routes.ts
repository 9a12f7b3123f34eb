import { allow, named, object, type RouteDeclarer, Type } from 'busbar/sdk'
import type { Platform } from './platform.js'

const features = named(
  'Features',
  object({ buildkit_available: Type.Boolean(), instance_name: Type.String() })
)

export function routes(route: RouteDeclarer<Platform>): void {
  route({
    method: 'GET',
    url: '/api/features',
    operationId: 'GetFeatures',
    summary: 'Get Features',
    description: 'What a client may want to know of the instance before anybody has signed in.',
    group: 'Public',
    access: allow.public('the sign-in page shows the name of the instance'),
    schema: { response: { 200: features } },
    handler: async (_request, { platform }) => await platform.features()
  })
}
