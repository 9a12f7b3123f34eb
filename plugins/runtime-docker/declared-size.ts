import type { DeclaredSize } from 'busbar/api/images'
import type Docker from 'dockerode'
import { problems } from './problems.js'

/** Each look at a container tells all of these, and a list of containers of every one. */
const most = { ports: 64, volumes: 64, bytes: 2 ** 20 }

/** What an image says of itself, and the engine again of each container made from it. */
export function declaredSize(config: Docker.ImageInspectInfo['Config']): DeclaredSize {
  const { Labels: labels, ExposedPorts: ports, Volumes: volumes } = config
  // The types of the client lack it.
  const { Shell: shell } = config as { readonly Shell?: readonly string[] | null }
  return {
    labelBytes: Buffer.byteLength(JSON.stringify(labels ?? {})),
    bytes: Buffer.byteLength(JSON.stringify({ ...config, ExposedPorts: {}, Volumes: {} })),
    shellBytes: Buffer.byteLength((shell ?? []).join(' ')),
    ports: Object.keys(ports ?? {}).length,
    volumes: Object.keys(volumes ?? {}).length
  }
}

/** Refuses an image whose containers would make every list of containers slow. */
export function checkDeclared(image: string, { ports, volumes, bytes }: DeclaredSize): void {
  const refuse = (what: string, limit: number, remedy: string): never => {
    throw problems.imageDeclares({ image, what, most: limit, remedy })
  }
  if (ports > most.ports)
    refuse(`${ports} exposed ports`, most.ports, 'EXPOSE only those that the application listens on')
  if (volumes > most.volumes)
    refuse(`${volumes} volumes`, most.volumes, 'declare a VOLUME for a directory above them')
  if (bytes > most.bytes)
    refuse(
      `${bytes} bytes of labels, variables and commands`,
      most.bytes,
      'move them into files of the image'
    )
}
