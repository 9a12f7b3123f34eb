/** `[registry/]name[:tag][@digest]` as engines take it: in lower case, but for the host and the tag. */
export const imageReferenceShape =
  /^(?<name>(?:[a-zA-Z0-9](?:[a-zA-Z0-9.-]*[a-zA-Z0-9])?(?::\d{1,5})?\/)?[a-z0-9]+(?:(?:[./]|__?|-+)[a-z0-9]+)*)(?::(?<tag>\w[\w.-]{0,127}))?(?:@(?<digest>sha256:[0-9a-f]{64}))?$/

/**
 * The host, with its port, that an image is pulled from and its credentials are sent to: `docker.io` for
 * `node` and `team/app`, `127.0.0.1:5000` for `127.0.0.1:5000/app`. In lower case, as hosts are compared.
 */
export function registryOf(image: string): string {
  const first = image.split('/', 1)[0] ?? ''
  // Engines since 23 take a name with a capital letter for a host as well.
  const isHost = image.includes('/') && (/[.:A-Z]/.test(first) || first === 'localhost')
  const host = isHost ? first.toLowerCase() : 'docker.io'
  return host === 'index.docker.io' ? 'docker.io' : host
}

/** Of the names that images have which came by `load`. They belong to the application they were loaded for, whatever their labels say. */
export const loadedPrefix = 'busbar-fetched-'

/** Codes of an image that did not come which say nothing of it: its registry could not be asked. */
export const registryAwayCodes: readonly string[] = [
  'E_REGISTRY_UNREACHABLE',
  'E_REGISTRY_UNKNOWN',
  'E_REGISTRY_TLS',
  'E_REGISTRY_PLAIN_HTTP',
  'E_REGISTRY_FAILING',
  'E_REGISTRY_ANSWER'
]
