import type { Import } from './import-graph.js'

/** What a `plugin.json` says about other plugins and contracts; nothing for a folder with a `contract.json`. */
export interface Dependencies {
  readonly isContract?: true
  readonly requires: readonly string[]
  readonly optional: readonly string[]
  readonly implements?: readonly string[]
}

/** Where each library that touches the world may be loaded. */
const homes: Readonly<Record<string, readonly string[]>> = {
  fastify: ['core/http/'],
  '@fastify/websocket': ['core/http/'],
  knex: ['core/database/'],
  // The durable queue is given its pool.
  pg: ['core/database/', 'core/jobs/worker-connections.ts', 'embedded-postgres/'],
  awilix: ['core/services/'],
  '@aws-sdk/client-s3': ['sdk/s3/'],
  'age-encryption': ['sdk/age/'],
  otplib: ['plugins/identity/'],
  '@node-rs/argon2': ['plugins/identity/'],
  dockerode: ['plugins/runtime-docker/'],
  nodemailer: ['plugins/mail/'],
  'pg-copy-streams': ['core/database/'],
  'prom-client': ['plugins/metrics/'],
  qrcode: ['plugins/identity/']
}

/** What of the SDK plugins import: the whole, and what only few need. */
const sdkEntries = [
  'busbar/sdk',
  'busbar/sdk/http1',
  'busbar/sdk/age',
  'busbar/sdk/disk',
  'busbar/sdk/s3',
  'busbar/sdk/tar'
]

/** The only files outside its folder that may start the embedded PostgreSQL. */
const startersOfEmbedded = ['core/kernel.ts', 'sdk/testing/cluster.ts']

/** Libraries whose types are part of what plugins see. */
const typesForPlugins = ['knex', 'pino']

/**
 * The folders and files of core by layer, from the bottom up. A file imports from its own folder and from the layers
 * below; those of one layer do not know each other.
 */
const coreLayers: readonly (readonly string[])[] = [
  ['cache', 'changes', 'clock', 'frames', 'log', 'release', 'schemas', 'threads'],
  ['config', 'database', 'declarations', 'event-loop', 'exec', 'limits', 'secrets', 'services', 'shutdown'],
  ['auth', 'bus', 'jobs'],
  ['resources'],
  ['access', 'events', 'schedules'],
  ['http'],
  ['audit', 'plugins'],
  [
    'half-restored',
    'installation',
    'instance-facts',
    'kernel-plugin',
    'kernel-schema',
    'kernel-warnings',
    'statistics'
  ],
  ['kernel'],
  ['main']
]

const partOfCore = (path: string): string => (path.split('/')[1] ?? '').replace(/\.ts$/, '')
const layerOf = (part: string): number => coreLayers.findIndex(layer => layer.includes(part))

/** What is wrong with an import within core; null when it leads down. */
function layerFault(from: string, to: string): string | null {
  const [part, target] = [partOfCore(from), partOfCore(to)]
  if (part === target) return null
  for (const name of [part, target])
    if (layerOf(name) < 0) return `core/${name} is in no layer: name it in coreLayers`
  return layerOf(target) < layerOf(part) ? null : `core/${part} lies below core/${target} or beside it`
}

type Zone =
  | { readonly kind: 'sdk' | 'testing' | 'core' | 'embedded' | 'free' }
  | { readonly kind: 'plugin'; readonly folder: string; readonly id: string; readonly isApi: boolean }

/** The part of the house a file belongs to. Tests, scripts and benchmarks may import anything. */
function zoneOf(path: string): Zone {
  const [first = '', second = ''] = path.split('/')
  if (path.startsWith('sdk/testing/')) return { kind: 'testing' }
  if (first === 'sdk') return { kind: 'sdk' }
  if (first === 'core') return { kind: 'core' }
  if (first === 'embedded-postgres') return { kind: 'embedded' }
  const plugin = /^((?:examples\/)?plugins\/([^/]+)\/)(test\/)?(.*)$/.exec(path)
  if (plugin === null || plugin[3] !== undefined) return { kind: 'free' }
  return { kind: 'plugin', folder: plugin[1] ?? '', id: plugin[2] ?? second, isApi: plugin[4] === 'api.ts' }
}

/** What is wrong with an import; null when it is allowed. `plugins` has the manifests by folder, those of contracts too. */
export function faultOf(edge: Import, plugins: ReadonlyMap<string, Dependencies>): string | null {
  const { from, specifier, to, isTypeOnly } = edge
  const isOurs = specifier.startsWith('.') || specifier.startsWith('busbar/')
  if (isOurs && to === null && !specifier.endsWith('.mjs')) return 'leads to no file'
  const zone = zoneOf(from)
  if (zone.kind === 'free') return null
  if (zone.kind === 'plugin' && plugins.get(zone.folder)?.isContract)
    return contractFault(zone, edge, plugins)
  return to === null ? libraryFault(zone, edge) : ownFault(zone, { from, to, isTypeOnly, specifier }, plugins)
}

/** A contract has nothing but itself, the sdk, and other contracts. */
function contractFault(
  zone: Zone & { kind: 'plugin' },
  { specifier, to, isTypeOnly }: Import,
  plugins: ReadonlyMap<string, Dependencies>
): string | null {
  if (to === null) return isTypeOnly ? null : 'a contract imports types of libraries only'
  const target = zoneOf(to)
  if (target.kind === 'sdk' && specifier === 'busbar/sdk') return null
  if (target.kind === 'plugin') {
    if (target.folder === zone.folder) return null
    if (specifier.startsWith('busbar/api/') && plugins.get(target.folder)?.isContract) return null
  }
  return 'a contract imports busbar/sdk and other contracts only'
}

function ownFault(
  zone: Zone,
  edge: Import & { readonly to: string },
  plugins: ReadonlyMap<string, Dependencies>
): string | null {
  const target = zoneOf(edge.to)
  if (target.kind === 'free') return 'only tests may import tests and scripts'
  if (target.kind === 'embedded' && zone.kind !== 'embedded') {
    const isAllowed = edge.to === 'embedded-postgres/index.ts' && startersOfEmbedded.includes(edge.from)
    return isAllowed
      ? null
      : `the index.ts of embedded-postgres is imported by ${startersOfEmbedded.join(' and ')} only`
  }
  switch (zone.kind) {
    case 'sdk':
      return target.kind === 'sdk' ? null : 'the sdk imports nothing of ours'
    case 'core':
      if (target.kind === 'core') return layerFault(edge.from, edge.to)
      return target.kind === 'sdk' ? null : `core imports the sdk only, not ${edge.to}`
    case 'embedded':
      return target.kind === 'embedded' || (target.kind === 'sdk' && edge.isTypeOnly)
        ? null
        : 'embedded-postgres imports nothing of ours but types of the sdk'
    case 'testing':
      return target.kind === 'plugin' && edge.specifier !== 'busbar/api/identity'
        ? 'the test kit knows no plugin but identity, which makes its users'
        : null
    case 'plugin':
      return pluginFault(zone, edge, target, plugins)
    case 'free':
      return null
  }
}

function pluginFault(
  zone: Zone & { kind: 'plugin' },
  edge: Import,
  target: Zone,
  plugins: ReadonlyMap<string, Dependencies>
): string | null {
  if (target.kind === 'sdk')
    return sdkEntries.includes(edge.specifier)
      ? null
      : `plugins import the sdk as ${sdkEntries.join(', or ')}`
  if (target.kind !== 'plugin') return "plugins import the sdk and each other's api.ts only"
  if (target.folder === zone.folder)
    return zone.isApi && !target.isApi && edge.to !== `${zone.folder}problems.ts`
      ? 'an api.ts imports the sdk, other api.ts and the problems.ts beside it only'
      : null
  if (!target.isApi || !edge.specifier.startsWith('busbar/api/'))
    return `other plugins are reached through busbar/api/${target.id} only`
  const [contract] = plugins.get(target.folder)?.implements ?? []
  if (contract !== undefined)
    return `${target.id} is one that implements ${contract}: it is reached through busbar/api/${contract}`
  if (zone.isApi) return null
  const own = plugins.get(zone.folder)
  return [...(own?.requires ?? []), ...(own?.optional ?? []), ...(own?.implements ?? [])].includes(target.id)
    ? null
    : `its plugin.json neither requires nor optionally uses ${target.id}`
}

function libraryFault(zone: Zone, { from, specifier, isTypeOnly }: Import): string | null {
  const library = specifier
    .split('/')
    .slice(0, specifier.startsWith('@') ? 2 : 1)
    .join('/')
  if (isTypeOnly && typesForPlugins.includes(library) && (zone.kind === 'sdk' || zone.kind === 'plugin'))
    return null
  if (zone.kind === 'testing') return null
  if (zone.kind === 'embedded')
    return library === 'pg' || library.startsWith('node:')
      ? null
      : 'embedded-postgres imports node and pg only'
  if (zone.kind === 'sdk' && library === 'pino') return 'the sdk imports the types of pino only'
  const allowed = homes[library]
  if (allowed === undefined || allowed.some(home => from.startsWith(home))) return null
  return `${library} is imported in ${allowed.join(' and ')} only`
}
