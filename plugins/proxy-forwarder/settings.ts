import { fromEnvironment, object, type Static, Type } from 'busbar/sdk'

export const settings = object({
  port: fromEnvironment(
    'BUSBAR_PROXY_PORT',
    Type.Integer({
      minimum: 0,
      maximum: 65_535,
      default: 8081,
      description: 'The port on which hostnames of applications are served over plain HTTP; 0: any free one'
    })
  ),
  bind: fromEnvironment(
    'BUSBAR_PROXY_BIND',
    Type.String({
      minLength: 1,
      default: '127.0.0.1',
      description: 'The address to listen on; 0.0.0.0 opens hostnames to the network'
    })
  )
})
export type Settings = Static<typeof settings>
