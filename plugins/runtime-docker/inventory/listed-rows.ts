import type {
  ListedContainer,
  ListedImage,
  ListedNetwork,
  ListedVolume,
  PublishedPort
} from 'busbar/api/containers'
import { hasName } from '../image-info.js'
import { type Fields, fieldsOf, listedEntries, listedText, timeOf } from './listed-text.js'

/** A row of the engine without whose it is. */
export type Unowned<T> = Omit<T, 'owner' | 'isManaged'>

/** A text that is compared, and so is not changed. */
export const textOf = (value: unknown): string => (typeof value === 'string' ? value : '')

/** What of labels are texts, as all of an engine are. */
export const labelsOf = (row: Fields): Record<string, string> =>
  Object.fromEntries(
    Object.entries(fieldsOf(row.Labels)).filter(
      (entry): entry is [string, string] => typeof entry[1] === 'string'
    )
  )

/** Of names and digests, the texts. */
export const namesOf = (value: unknown): string[] =>
  Array.isArray(value) ? value.filter(one => typeof one === 'string') : []

export const containerRow = (row: Fields): Unowned<ListedContainer> => ({
  id: textOf(row.Id),
  // One that is linked to has several; its own has no slash but the first.
  name: listedText(namesOf(row.Names).find(name => name.lastIndexOf('/') === 0)).replace(/^\//, ''),
  image: listedText(row.Image),
  imageId: textOf(row.ImageID),
  status: listedText(row.State),
  ports: listedEntries(row.Ports, portOf),
  networks: listedEntries(Object.values(fieldsOf(fieldsOf(row.NetworkSettings).Networks)), networkOf),
  volumes: listedEntries(row.Mounts, mount => {
    const { Type: type, Name: name } = fieldsOf(mount)
    return type === 'volume' && typeof name === 'string' ? [name] : []
  }),
  createdAt: timeOf(row.Created)
})

function portOf(port: unknown): readonly PublishedPort[] {
  const { IP: host, PrivatePort: containerPort, PublicPort: hostPort, Type: protocol } = fieldsOf(port)
  if (typeof hostPort !== 'number' || typeof containerPort !== 'number' || hostPort === 0) return []
  const any = host === '0.0.0.0' || host === '::'
  return [{ host: any ? '' : listedText(host), hostPort, containerPort, protocol: listedText(protocol) }]
}

/** Of one that does not run there is a network, and no endpoint in it. */
function networkOf(endpoint: unknown): ListedContainer['networks'] {
  const {
    NetworkID: id,
    EndpointID: connection,
    IPAddress: address,
    IPPrefixLen: prefix
  } = fieldsOf(endpoint)
  if (textOf(connection) === '' || textOf(id) === '') return []
  return [
    { id: textOf(id), ipv4Address: textOf(address) === '' ? '' : `${listedText(address)}/${String(prefix)}` }
  ]
}

export function imageRow(row: Fields): Unowned<ListedImage> {
  const tags = namesOf(row.RepoTags).filter(tag => hasName([tag]))
  return {
    id: textOf(row.Id),
    tags: listedEntries(tags, tag => [listedText(tag)]),
    isDangling: tags.length === 0 && !hasName(namesOf(row.RepoDigests)),
    sizeBytes: typeof row.Size === 'number' && row.Size > 0 ? row.Size : 0,
    createdAt: timeOf(row.Created)
  }
}

export const networkRow = (row: Fields): Unowned<ListedNetwork> => ({
  id: textOf(row.Id),
  name: listedText(row.Name),
  driver: listedText(row.Driver),
  scope: listedText(row.Scope),
  isInternal: row.Internal === true,
  createdAt: timeOf(row.Created)
})

export const volumeRow = (row: Fields): Unowned<ListedVolume> => ({
  name: listedText(row.Name),
  driver: listedText(row.Driver),
  mountpoint: listedText(row.Mountpoint),
  scope: listedText(row.Scope),
  createdAt: row.CreatedAt === undefined ? null : timeOf(row.CreatedAt)
})
