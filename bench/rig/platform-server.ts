import { join } from 'node:path'
import { monitorEventLoopDelay } from 'node:perf_hooks'
import { fileURLToPath, pathToFileURL } from 'node:url'
import v8 from 'node:v8'
import type { Access, AnyPlugin, RouteDeclarer, RouteSchema, RouteSpec } from 'busbar/sdk'
import pg from 'pg'
import { readSettings } from '../../core/config/environment.js'
import { PluginInstance } from '../../core/http/plugin-instance.js'
import { type Kernel, startKernel } from '../../core/kernel.js'
import { importDefinition } from '../../core/plugins/definition.js'
import { discover } from '../../core/plugins/discovery.js'
import { type Manifest, parseManifest } from '../../core/plugins/manifest.js'
import { listRoute } from '../../sdk/list.js'
import { serveParent } from './child.js'
import { streamingPlugin } from './streaming-plugin.js'

/** How the platform's plugins are given to the kernel. */
export type Variant =
  /** From their folders, as the platform itself does. */
  | 'folders'
  /** Loaded beforehand, so that a start can be compared with one of `noSchemas`. */
  | 'loaded'
  /** Loaded beforehand and without the schemas of their routes. */
  | 'noSchemas'

export interface PlatformReady {
  readonly port: number
  readonly databaseUrl: string
  /** From the call of startKernel, with every module of the kernel loaded, until it listens. */
  readonly startMs: number
  /** What that cost, which says more than the time on a machine that has other things to do. */
  readonly startCpuMs: number
  readonly routes: ReadonlyArray<readonly [method: string, url: string]>
}

const folder = fileURLToPath(new URL('../../plugins', import.meta.url))
const bench: Inline = { manifest: wholeManifest('bench', ['bus']), definition: streamingPlugin }

interface Inline {
  readonly manifest: Manifest
  readonly definition: AnyPlugin
}

const variant = process.argv[2] as Variant
const all = { directory: folder, builtIn: true }
const found = await discover([all])
const inline = variant === 'folders' ? [bench] : [bench, ...(await loadPlugins(variant === 'noSchemas'))]
// Plugins that are given as values require contracts too, which have no code.
const contracts = found.contracts.map(({ id }) => ({ ...all, only: id }))
const startedAt = performance.now()
const cpuBefore = process.cpuUsage()
const kernel = await startKernel({
  settings: readSettings(process.env),
  roots: variant === 'folders' ? [all] : contracts,
  inline
})
const startMs = performance.now() - startedAt
liftSharedBudgets(kernel)
const cpu = process.cpuUsage(cpuBefore)
process.on('SIGTERM', () => {
  void kernel.close().finally(() => {
    process.exit()
  })
})

/** A few users stand for hundreds here: what all tokens of one share is counted, and not held against them. */
function liftSharedBudgets({ edge }: Kernel): void {
  const { limiter } = edge.options.guard
  const take = limiter.take.bind(limiter)
  limiter.take = (key, max, windowMs) => take(key, key.startsWith('tokens:') ? Infinity : max, windowMs)
}

const delay = monitorEventLoopDelay({ resolution: 1 })
const statements = new Map<string, number>()

/** What the benchmark asks a platform that it runs in a process of its own. */
const commands = {
  /** From now on, counts what is sent to PostgreSQL. */
  countStatements() {
    const { query } = pg.Client.prototype
    pg.Client.prototype.query = function (this: pg.Client, ...args: Parameters<typeof query>) {
      const [config] = args as unknown as [string | { text: string; name?: string }]
      const name = typeof config === 'string' ? config : (config.name ?? config.text)
      statements.set(name, (statements.get(name) ?? 0) + 1)
      return query.apply(this, args)
    } as typeof query
  },
  statements: () => Object.fromEntries(statements),
  watchLoop() {
    delay.enable()
    delay.reset()
  },
  longestStallMs: () => delay.max / 1e6,
  /** The heap that is in use after a collection, in bytes. */
  heap() {
    for (let n = 0; n < 3; n++) globalThis.gc?.()
    return process.memoryUsage().heapUsed
  },
  /** The same with what lies beside the heap. */
  memory() {
    for (let n = 0; n < 3; n++) globalThis.gc?.()
    const { heapUsed, external } = process.memoryUsage()
    return heapUsed + external
  },
  /** Instances of plugins that are still in memory, and plugins that run. */
  instances: () => ({
    live: v8.queryObjects(PluginInstance, { format: 'count' }),
    running: runningPlugins(kernel)
  })
}
export type PlatformCommands = typeof commands

serveParent(
  {
    port: kernel.address.port,
    databaseUrl: kernel.postgres.url,
    startMs,
    startCpuMs: (cpu.user + cpu.system) / 1000,
    routes: kernel.edge.table.entries.map(({ record: { method, url } }) => [method, url] as const)
  } satisfies PlatformReady,
  commands
)

/** The kernel's own routes are served by an instance like those of plugins. */
function runningPlugins({ reconciler }: Kernel): number {
  return [...reconciler.entries.values()].filter(({ run }) => run !== undefined).length + 1
}

async function loadPlugins(withoutSchemas: boolean): Promise<Inline[]> {
  return await Promise.all(
    found.plugins.map(async plugin => {
      if ('fault' in plugin) throw new Error(`${plugin.id}: ${plugin.fault}`)
      const definition = await importDefinition(
        pathToFileURL(join(plugin.directory, `${plugin.manifest.main}.js`)).href
      )
      return { manifest: plugin.manifest, definition: withoutSchemas ? stripped(definition) : definition }
    })
  )
}

/** The same plugin, whose routes say nothing of what they take and answer but that a body is JSON. */
function stripped(definition: AnyPlugin): AnyPlugin {
  const { routes } = definition
  if (routes === undefined) return definition
  return {
    ...definition,
    routes: declare => {
      const route = ({ schema, ...spec }: RouteSpec<string, Access, RouteSchema, object>): void => {
        // The types of a declaration follow from its schema, which is gone.
        Reflect.apply(declare, undefined, [
          { ...spec, body: spec.body ?? (schema?.body === undefined ? 'none' : 'json') }
        ])
      }
      const list = (spec: Parameters<typeof listRoute<object>>[0]): void => {
        route(listRoute(spec))
      }
      routes(Object.assign(route, { list }) as RouteDeclarer<object>)
    }
  }
}

function wholeManifest(id: string, grants: readonly string[]): Manifest {
  return parseManifest(
    JSON.stringify({
      id,
      version: '0.1.0',
      sdk: '^0.1.0',
      name: id,
      description: 'For the benchmark',
      grants
    }),
    id
  )
}
