import { allow, object, Type, type RouteDeclarer } from 'busbar/sdk'
import type { PlatformService } from './platform-service.js'

const features = object({ buildkit_available: Type.Boolean(), instance_name: Type.String() })

export function routes (route: RouteDeclarer<PlatformService>): void {
  route({
    method: 'GET', url: '/api/features', summary: 'Get Features', group: 'Public',
    access: allow.public('the sign-in page shows the name of the instance'),
    schema: { response: { 200: features } },
    handler: async (_request, platform) => await platform.features()
  })
}
