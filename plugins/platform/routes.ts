import { allow, described, named, object, type RouteDeclarer, Type } from 'busbar/sdk'
import type { Platform } from './platform.js'

const features = named(
  'Features',
  object({
    buildkit_available: described(
      Type.Boolean(),
      'Whether there is a builder that works by BuildKit (`railpack`); whether it can be used on this machine, `GET /api/builders` says.'
    ),
    instance_name: described(
      Type.String(),
      'What the instance was called at its set-up; `Busbar` where it got no name.'
    )
  }),
  { description: 'What may be known of an instance without a credential.' }
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
