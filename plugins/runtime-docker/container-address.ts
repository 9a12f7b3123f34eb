import type Docker from 'dockerode'
import { short } from './container-access.js'
import { problems } from './problems.js'
import { routeConflictOf } from './route-check.js'

type Seen = Pick<Docker.ContainerInspectInfo, 'Id' | 'HostConfig' | 'NetworkSettings'>

/** Where a running container is reached: in the network that it was made for, else in the first that it has an address in. */
export function dialedAddress({ Id, HostConfig, NetworkSettings }: Seen): {
  readonly network: string
  readonly host: string
} {
  const connected = Object.entries(NetworkSettings.Networks).filter(([, { IPAddress }]) => IPAddress !== '')
  const [network, endpoint] =
    connected.find(([name]) => name === HostConfig.NetworkMode) ?? connected[0] ?? []
  if (network === undefined || endpoint === undefined)
    throw problems.containerUnconnected({ container: short(Id) })
  return { network, host: endpoint.IPAddress }
}

/** Why this machine sends elsewhere what is for the container; null where it does not. */
export async function routeConflictTo({ HostConfig, NetworkSettings }: Seen): Promise<string | null> {
  const network = HostConfig.NetworkMode ?? ''
  const endpoint = NetworkSettings.Networks[network]
  if (endpoint === undefined || endpoint.IPAddress === '') return null
  return await routeConflictOf({ network, address: endpoint.IPAddress, prefix: endpoint.IPPrefixLen })
}
