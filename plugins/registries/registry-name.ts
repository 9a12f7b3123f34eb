import { imageReferenceShape, registryOf } from 'busbar/api/images'

/** Of Docker Hub: its registry goes by these in names of images, and in what `docker login` writes. */
const hubHosts: ReadonlySet<string> = new Set(['docker.io', 'index.docker.io', 'registry-1.docker.io'])
/** People call it by these too, but no account is sent there. */
const hubSites: ReadonlySet<string> = new Set(['hub.docker.com', 'registry.hub.docker.com'])

/**
 * The registry that somebody has written, as it is compared: `docker.io`, `ghcr.io`, `127.0.0.1:5000`. Taken are a host with
 * or without a port, and its address as `docker login` takes it; undefined for anything else, an image's name included.
 */
export function parseRegistry(written: string): string | undefined {
  const host = written
    .trim()
    .toLowerCase()
    .replace(/^https?:\/\//, '')
    .replace(/\/(?:v[12]\/?)?$/, '')
  if (hubHosts.has(host) || hubSites.has(host)) return 'docker.io'
  const isHost = /[.:]/.test(host) || host === 'localhost'
  // As part of an image's name, or no image could name it.
  if (!isHost || host.includes('/') || !imageReferenceShape.test(`${host}/x`)) return undefined
  if (!URL.canParse(`https://${host}/`)) return undefined
  return withoutUsualPort(host)
}

/** The registry of an image, written as `parseRegistry` does. */
export const registryOfImage = (image: string): string => {
  const registry = registryOf(image)
  return hubHosts.has(registry) ? 'docker.io' : withoutUsualPort(registry)
}

/** TLS has it anyway. */
const withoutUsualPort = (host: string): string => host.replace(/:443$/, '')
