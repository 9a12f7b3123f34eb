import { randomUUID } from 'node:crypto'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { basename, dirname, join, resolve } from 'node:path'
import { fileURLToPath } from 'node:url'
import { type Identity, identity } from 'busbar/api/identity'
import {
  type AnyPlugin,
  type Clock,
  cookieNames,
  type Database,
  type DomainEvent,
  type Role,
  type Scope,
  type Service,
  type Tx
} from 'busbar/sdk'
import { readSettings } from '../../core/config/environment.js'
import { pluginDatabase } from '../../core/database/plugin-database.js'
import type { RouteRecord } from '../../core/declarations/records.js'
import { type Kernel, startKernel } from '../../core/kernel.js'
import { type Manifest, parseManifest } from '../../core/plugins/manifest.js'
import type { TestDatabase } from './cluster.js'
import { createMigratedDatabase } from './migrated-database.js'
import { claimPortRange } from './port-range.js'
import { TestClient } from './test-client.js'
import { type Frame, TestSocket } from './test-socket.js'
import { watchAnswers } from './undeclared-answers.js'
import { watchMessages } from './undeclared-messages.js'

export interface TestKernelOptions {
  /** Folders of third-party plugins to install and turn on, as `new URL('..', import.meta.url)`. */
  readonly plugins?: ReadonlyArray<URL | string>
  /** A folder of third-party plugins, which stay off until they are enabled. */
  readonly thirdParty?: string
  /** Plugins as values, treated as built in: `{ manifest: { id: 'probe' }, definition: definePlugin(…) }`. */
  readonly inline?: ReadonlyArray<{
    readonly manifest: Partial<Manifest> & { readonly id: string }
    readonly definition: AnyPlugin
  }>
  /** `testClock()` from `busbar/sdk/testing` to move time by hand; the system's otherwise. */
  readonly clock?: Clock
  /** Environment variables of the platform: `{ GIT_PRIVATE_HOSTS: 'deny' }`. */
  readonly environment?: Readonly<Record<string, string>>
  /** Keep this directory's and database's state for a second kernel (a restart). */
  readonly state?: TestState
  /** Watch the event loop, as production does. */
  readonly watchesEventLoop?: boolean
  /** Do not wait for the third-party plugins that are on: they may hang. */
  readonly unsettled?: boolean
  /** Receives every log line (JSON). */
  readonly onLog?: (line: string) => void
}

/** What survives a restart: the database and BUSBAR_DIR. */
export interface TestState {
  readonly database: TestDatabase
  readonly directory: string
}

export interface TestUser {
  readonly id: string
  readonly email: string
  readonly password: string
  readonly role: Role
}

interface TestRoute {
  readonly record: RouteRecord
  /** False while its plugin is off. */
  readonly isServed: boolean
}

/** A real platform for one test file: its own database, its own port, everything else as in production. */
export interface TestKernel {
  /** The inside, for tests of the kernel itself. */
  readonly kernel: Kernel
  readonly url: string
  readonly port: number
  readonly state: TestState
  /** Clients by who they are. Names make users: the same name is the same user. `admin` is the first. */
  readonly as: {
    anonymous(): TestClient
    session(name?: 'admin' | 'member' | (string & {})): Promise<TestClient>
    token(
      scope: Scope,
      options?: { readonly pins?: readonly string[]; readonly user?: string }
    ): Promise<TestClient>
  }
  user(name: string): Promise<TestUser>
  /** On `/api/ws`, or on a socket of a plugin, whose frames are `F`. */
  socket<F = Frame>(client: TestClient, path?: string): Promise<TestSocket<F>>
  /** The running implementation of a service, as another plugin would get it. */
  service<T extends object>(service: Service<T>): T
  /** Whether something that runs provides the service. */
  isProvided(service: Service<object>): boolean
  /** The database as the plugin of this id gets it from `kernel.database`. */
  database(plugin: string): Database
  /** Plain SQL with `$1` parameters, past every plugin: to look at what is stored, or to age it. */
  query<Row extends object>(text: string, values?: readonly unknown[], tx?: Tx): Promise<Row[]>
  /** Commits when `work` resolves, and rolls back when it rejects. */
  transaction<T>(work: (tx: Tx) => Promise<T>): Promise<T>
  /** Turns a plugin on and waits until it runs; rejects like `POST /api/plugins/{id}/enable`. */
  enable(plugin: string): Promise<void>
  /** Turns a plugin off and waits until it has ended; rejects like `POST /api/plugins/{id}/disable`. */
  disable(plugin: string, options?: { readonly cascade?: boolean; readonly force?: boolean }): Promise<void>
  /** Replaces a running plugin by what lies in its folder; rejects like `POST /api/plugins/{id}/reload`. */
  reload(plugin: string): Promise<void>
  /** Replaces the settings of a plugin; rejects like `PUT /api/plugins/{id}/config`. */
  configure(plugin: string, config: Readonly<Record<string, unknown>>): Promise<void>
  /** Ids of the plugins that run, each after what it needs. */
  runningPlugins(): readonly string[]
  /** Asks every running plugin how it is, as the platform does every 30 s. */
  checkHealth(): Promise<void>
  /** Publishes on the channel whatever it is given, as if its plugin did. */
  publish(channel: string, event: string, data: unknown): void
  /** True while the channel has a subscriber, by its full name. */
  hasSubscribers(channel: string): boolean
  /** Emits an event, and with it the notifications that it is, as its plugin does. */
  emit<T>(event: DomainEvent<T>, data: T): Promise<void>
  /** Stores a job of a plugin as the plugin does. */
  enqueue(plugin: string, job: string, payload: object): Promise<void>
  /** Takes no more jobs of the plugin, which wait in the queue until it is turned on again. */
  holdJobs(plugin: string): Promise<void>
  /** Forgets what has been counted: for tests that ask more often than a client may. */
  resetRateLimits(): void
  /** Every route that a plugin declares, also while it is off. */
  routes(): readonly TestRoute[]
  /** Requests that a plugin has under way; -1 while it is off. */
  inFlight(plugin: string): number
  /** What operations have answered that they do not declare: `POST /api/projects 418`, each once. `close` does not reject for what was told here. */
  undeclaredAnswers(): readonly string[]
  /** What plugins have published that is not as their channels declare it: `log on build-logs:{deploymentId}: …`, each once. */
  undeclaredMessages(): readonly string[]
  /** What was wrong with events that are notifications, such as a field of their words that is missing, each once. `close` does not reject for what was told here. */
  notificationFaults(): readonly string[]
  /** Begins the next round of all removals now, instead of after its delay. */
  runRemovalsNow(): Promise<void>
  /** Stops the platform and keeps the state. */
  stop(): Promise<void>
  /** Stops the platform and removes everything. Rejects when an operation has answered, or a plugin published or told, what it does not declare. */
  close(): Promise<void>
}

/** Each takes away what a platform keeps beside its folder and its database; they run at every `close`. */
export const closers = new Set<(state: TestState) => Promise<void>>()

const builtIns = join(dirname(fileURLToPath(import.meta.url)), '..', '..', 'plugins')
const password = 'correct horse battery'
/** One for all platforms of this process. */
let directPorts: Promise<string> | undefined

/**
 * Boots the real platform. Median well below 300 ms once the database is warm.
 *
 *     const k = await createTestKernel()
 *     t.teardown(() => k.close())
 *     const admin = await k.as.session()
 *     const answer = await admin.post('/api/projects', { name: 'Shop', slug: 'shop' })
 */
export async function createTestKernel(options: TestKernelOptions = {}): Promise<TestKernel> {
  const state = options.state ?? {
    database: await createMigratedDatabase(async url => {
      const directory = await mkdtemp(join(tmpdir(), 'busbar-template-'))
      const kernel = await boot({}, { database: { url, drop: async () => {} }, directory })
      return {
        close: async () => {
          await kernel.close()
          await rm(directory, { recursive: true, force: true })
        }
      }
    }),
    directory: await mkdtemp(join(tmpdir(), 'busbar-test-'))
  }
  const kernel = await boot(options, state).catch(async (error: unknown) => {
    if (options.state === undefined) await removeState(state)
    throw error
  })
  if (options.unsettled !== true) await kernel.settled
  const { port } = kernel.address
  const url = `http://127.0.0.1:${port}`
  for (const folder of folders(options)) await kernel.reconciler.enable(basename(folder))
  const people = new People(kernel, url)
  const answers = watchAnswers(kernel)
  const messages = watchMessages(kernel)
  const toldFaults = new Set<string>()
  let stopped = false
  const stop = async (): Promise<void> => {
    if (stopped) return
    stopped = true
    await kernel.close()
  }
  return {
    kernel,
    url,
    port,
    state,
    as: {
      anonymous: () => new TestClient(url),
      session: async name => await people.session(name ?? 'admin'),
      token: async (scope, { pins, user } = {}) => await people.token(scope, user ?? 'admin', pins)
    },
    user: async name => await people.user(name),
    socket: async (client, path) => await TestSocket.open(client, path),
    service: wanted => kernel.registry.handle(wanted.id) as never,
    isProvided: ({ id }) => kernel.registry.isProvided(id),
    database: plugin => pluginDatabase(kernel.postgres, plugin),
    query: async (text, values, tx) => await kernel.postgres.query(text, values, tx),
    transaction: async work => await kernel.postgres.transaction(work),
    enable: async plugin => {
      await kernel.reconciler.enable(plugin)
    },
    disable: async (plugin, choice = {}) => {
      await kernel.reconciler.disable(plugin, choice)
    },
    reload: async plugin => {
      await kernel.reconciler.reload(plugin)
    },
    configure: async (plugin, config) => {
      await kernel.reconciler.configure(plugin, config)
    },
    runningPlugins: () =>
      kernel.reconciler.catalog.inOrder.filter(({ run }) => run !== undefined).map(({ id }) => id),
    checkHealth: async () => await kernel.reconciler.checkHealth(),
    publish: messages.publish,
    hasSubscribers: channel => kernel.hub.hasSubscribers(channel),
    emit: async (event, data) => {
      const plugin = event.id.slice(0, event.id.indexOf('.'))
      await kernel.postgres.transaction(async tx => await kernel.events.for(plugin).emit(event, data, tx))
    },
    enqueue: async (plugin, job, payload) => await kernel.jobs.for(plugin).enqueue(job, payload),
    holdJobs: async plugin => await kernel.jobs.remove(plugin),
    resetRateLimits: () => kernel.edge.options.guard.limiter.reset(),
    routes: () =>
      kernel.edge.table.entries.map(({ record, instance }) => ({ record, isServed: instance !== undefined })),
    inFlight: plugin => kernel.reconciler.entries.get(plugin)?.run?.instance?.inFlight ?? -1,
    undeclaredAnswers: answers.undeclared,
    undeclaredMessages: messages.undeclared,
    notificationFaults: () => {
      for (const fault of kernel.events.notificationFaults) toldFaults.add(fault)
      return [...toldFaults].sort()
    },
    runRemovalsNow: async () => {
      await kernel.removals.resume()
    },
    stop,
    close: async () => {
      await stop()
      await removeState(state)
      const published = messages.undeclared()
      if (published.length > 0) throw new Error(`published, but not as declared: ${published.join('; ')}`)
      const wrong = kernel.events.notificationFaults.filter(fault => !toldFaults.has(fault))
      if (wrong.length > 0) throw new Error(`told, but not as declared: ${wrong.join('; ')}`)
      const answered = answers.untold()
      if (answered.length > 0) throw new Error(`answered, but not declared: ${answered.join('; ')}`)
    }
  }
}

async function removeState(state: TestState): Promise<void> {
  for (const remove of closers) await remove(state)
  await state.database.drop()
  await rm(state.directory, { recursive: true, force: true })
}

const folders = ({ plugins = [] }: TestKernelOptions): string[] =>
  plugins.map(plugin => resolve(plugin instanceof URL ? fileURLToPath(plugin) : plugin))

async function boot(options: TestKernelOptions, { database, directory }: TestState): Promise<Kernel> {
  directPorts ??= claimPortRange()
  const settings = readSettings({
    PATH: process.env.PATH,
    HOME: process.env.HOME,
    DOCKER_HOST: process.env.DOCKER_HOST,
    // Where several engines share the machine's network.
    BUSBAR_SUBNETS: process.env.BUSBAR_SUBNETS,
    LOG_LEVEL: options.onLog === undefined ? 'silent' : 'debug',
    LOG_FORMAT: 'json',
    BUSBAR_DIRECT_PORTS: await directPorts,
    // Any free port: files run side by side.
    BUSBAR_PROXY_PORT: '0',
    // One that the machine has would take its ports of HTTP and TLS.
    BUSBAR_CADDY_PROGRAM: 'none',
    // A test fetches nothing from the world of its own accord, and builds alike on every machine.
    BUILD_ENGINE: 'classic',
    ...options.environment,
    BUSBAR_DIR: directory,
    DATABASE_URL: database.url,
    PORT: '0'
  })
  const roots = folders(options).map(folder => ({
    directory: dirname(folder),
    builtIn: false,
    only: basename(folder)
  }))
  return await startKernel({
    settings,
    roots: [
      { directory: builtIns, builtIn: true },
      ...roots,
      ...(options.thirdParty === undefined ? [] : [{ directory: options.thirdParty, builtIn: false }])
    ],
    inline: (options.inline ?? []).map(({ manifest, definition }) => ({
      manifest: wholeManifest(manifest),
      definition
    })),
    clock: options.clock,
    watchesEventLoop: options.watchesEventLoop,
    logDestination: options.onLog === undefined ? undefined : { write: options.onLog }
  })
}

const wholeManifest = (given: Partial<Manifest> & { id: string }): Manifest =>
  parseManifest(
    JSON.stringify({ version: '0.1.0', sdk: '^0.1.0', name: given.id, description: 'a test', ...given }),
    given.id
  )

/** Users, sessions and tokens made on demand through the platform's own identity. */
class People {
  readonly #users = new Map<string, Promise<TestUser>>()
  readonly #sessions = new Map<string, Promise<TestClient>>()

  readonly #identity: Identity

  constructor(
    { registry }: Kernel,
    readonly url: string
  ) {
    this.#identity = registry.handle(identity.id) as Identity
  }

  async user(name: string): Promise<TestUser> {
    let user = this.#users.get(name)
    if (user === undefined) {
      user = this.#create(name)
      this.#users.set(name, user)
    }
    return await user
  }

  async session(name: string): Promise<TestClient> {
    let session = this.#sessions.get(name)
    if (session === undefined) {
      session = this.#signIn(name)
      this.#sessions.set(name, session)
    }
    return await session
  }

  async token(scope: Scope, name: string, pins: readonly string[] | undefined): Promise<TestClient> {
    const session = await this.session(name)
    const answer = await session.post('/api/tokens', {
      name: `${scope} ${randomUUID()}`,
      scopes: [scope],
      ...(pins === undefined ? {} : { project_ids: pins })
    })
    if (answer.status !== 201) throw new Error(`no token: ${answer.status} ${JSON.stringify(answer.body)}`)
    return new TestClient(
      this.url,
      { authorization: `Bearer ${answer.body.token as string}` },
      session.userId
    )
  }

  async #create(name: string): Promise<TestUser> {
    const email = `${name}@example.com`
    const role: Role = name === 'admin' ? 'admin' : 'member'
    if (name !== 'admin') await this.user('admin')
    const existing = (await this.#identity.listUsers({ limit: 1000, offset: 0 })).rows.find(
      row => row.email === email
    )
    const row =
      existing ??
      (role === 'admin'
        ? await this.#identity.setUp({ email, password, username: name })
        : await this.#identity.createUser({ email, password, role, username: name }))
    return { id: row.id, email, password, role }
  }

  async #signIn(name: string): Promise<TestClient> {
    const user = await this.user(name)
    const outcome = await this.#identity.login(
      { email: user.email, password },
      { ip: '127.0.0.1', userAgent: 'test' }
    )
    if (outcome.kind !== 'signedIn') throw new Error(`${name} has a second factor`)
    const cookies = outcome.grant.cookies
    const csrf = cookies.find(cookie => cookie.name === cookieNames.csrf)?.value ?? ''
    return new TestClient(
      this.url,
      { cookie: cookies.map(({ name: key, value }) => `${key}=${value}`).join('; '), 'x-csrf-token': csrf },
      user.id
    )
  }
}
