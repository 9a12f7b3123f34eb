import type Docker from 'dockerode'
import type { DeclaredSize } from './api.js'

/** What an image says of itself, and the engine again of each container made from it. */
export function declaredSize(config: Docker.ImageInspectInfo['Config']): DeclaredSize {
  const { Labels: labels, ExposedPorts: ports, Volumes: volumes } = config
  return {
    labelBytes: Buffer.byteLength(JSON.stringify(labels ?? {})),
    bytes: Buffer.byteLength(JSON.stringify({ ...config, ExposedPorts: {}, Volumes: {} })),
    ports: Object.keys(ports ?? {}).length,
    volumes: Object.keys(volumes ?? {}).length
  }
}
