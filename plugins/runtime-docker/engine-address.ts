import { existsSync, readFileSync } from 'node:fs'
import { homedir } from 'node:os'
import { join } from 'node:path'
import type { DockerOptions } from 'dockerode'
import { problems } from './problems.js'
import type { EngineSettings } from './settings.js'

/** Where an engine listens. `text` is how messages name it. */
type EngineAddress =
  | { readonly kind: 'socket'; readonly text: string; readonly path: string }
  | {
      readonly kind: 'tcp'
      readonly text: string
      readonly host: string
      readonly port: number
      readonly certificates: string | null
    }

/** What DOCKER_HOST looks like; `parseDockerHost` reads the rest. */
export const dockerHostForm = /^(?:unix:\/\/\/|(?:tcp|https?):\/\/[^/])/

/** DOCKER_HOST as an address, by the rules of the docker command. */
export function parseDockerHost(
  value: string,
  settings: Pick<EngineSettings, 'docker_tls_verify' | 'docker_cert_path'>
): EngineAddress {
  if (value.startsWith('unix://')) {
    const path = value.slice('unix://'.length)
    if (path.startsWith('/')) return { kind: 'socket', text: path, path }
  }
  const url = parseUrl(value)
  if (url === undefined || !['tcp:', 'http:', 'https:'].includes(url.protocol) || url.hostname === '') {
    throw problems.badAddress({ address: value })
  }
  const isTls = url.protocol === 'https:' || settings.docker_tls_verify !== undefined
  return {
    kind: 'tcp',
    text: value,
    host: url.hostname.replace(/^\[|\]$/g, ''),
    port: url.port === '' ? (isTls ? 2376 : 2375) : Number(url.port),
    certificates: isTls ? (settings.docker_cert_path ?? join(homedir(), '.docker')) : null
  }
}

// A scheme the URL parser does not know as special accepts anything as a host, so it is given one it knows.
function parseUrl(value: string): { protocol: string; hostname: string; port: string } | undefined {
  const [, protocol, rest] = /^([a-z]+:)\/\/(.+)$/.exec(value) ?? []
  if (protocol === undefined || rest === undefined) return undefined
  try {
    const { hostname, port } = new URL(`ws://${rest}`)
    return { protocol, hostname, port }
  } catch {
    return undefined
  }
}

/** DOCKER_HOST, or the first of the usual sockets that exists, or the most usual one. */
export function findEngine(
  settings: EngineSettings,
  exists: (path: string) => boolean = existsSync
): EngineAddress {
  const { docker_host: host } = settings
  if (host !== undefined) return parseDockerHost(host, settings)
  const sockets = usualSockets(settings)
  const path = sockets.find(exists)
  return path === undefined
    ? { kind: 'socket', text: sockets.join(' or '), path: '/var/run/docker.sock' }
    : { kind: 'socket', text: path, path }
}

function usualSockets({ xdg_runtime_dir: runtimeDirectory }: EngineSettings): string[] {
  return [
    '/var/run/docker.sock',
    ...(runtimeDirectory === undefined ? [] : [join(runtimeDirectory, 'docker.sock')]),
    join(homedir(), '.docker/run/docker.sock')
  ]
}

/** The same address for the docker command and what is built on it. */
export function commandEnvironment(address: EngineAddress): Record<string, string> {
  if (address.kind === 'socket') return { DOCKER_HOST: `unix://${address.path}` }
  const host = address.host.includes(':') ? `[${address.host}]` : address.host
  return {
    DOCKER_HOST: `tcp://${host}:${address.port}`,
    ...(address.certificates === null
      ? {}
      : { DOCKER_TLS_VERIFY: '1', DOCKER_CERT_PATH: address.certificates })
  }
}

/** A socket, or a port of a loopback address. A tunnel to another machine looks the same and cannot be told apart. */
export const isOnThisMachine = (address: EngineAddress): boolean =>
  address.kind === 'socket' ||
  address.host === 'localhost' ||
  address.host === '::1' ||
  /^127\./.test(address.host)

/** Every connection setting is named, because dockerode takes what is absent from its own reading of DOCKER_HOST. */
export function connectionOptions(address: EngineAddress): DockerOptions {
  if (address.kind === 'socket') {
    return {
      socketPath: address.path,
      host: undefined,
      port: undefined,
      protocol: 'http',
      ca: undefined,
      cert: undefined,
      key: undefined
    }
  }
  const { host, port, certificates } = address
  const common = { socketPath: undefined, host, port, pathPrefix: '/' }
  if (certificates === null)
    return { ...common, protocol: 'http', ca: undefined, cert: undefined, key: undefined }
  try {
    const [ca, cert, key] = ['ca.pem', 'cert.pem', 'key.pem'].map(name =>
      readFileSync(join(certificates, name))
    )
    return { ...common, protocol: 'https', ca, cert, key }
  } catch (error) {
    throw problems.badCertificates({ reason: error instanceof Error ? error.message : String(error) })
  }
}
