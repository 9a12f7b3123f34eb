import type {
  Access,
  AnyPlugin,
  ChannelSpec,
  JobSpec,
  ResourceSpec,
  RouteSchema,
  RouteSpec,
  ScheduleSpec,
  SingletonSpec,
  SocketSpec
} from 'busbar/sdk'
import { listRoute } from '../../sdk/list.js'
import { faultOf } from '../frames/fault.js'
import { unknownName } from '../schemas/did-you-mean.js'
import { checkSchema, strictBody } from '../schemas/schemas.js'
import { accessFaults } from './access-faults.js'
import { frozen, paramsOf, problemsOf, type RecordContext, RecordError, shapeOf } from './declared-parts.js'
import { notificationFaults, notificationRecord } from './notification-kinds.js'
import type {
  ChannelRecord,
  EventRecord,
  JobRecord,
  NotificationHandler,
  NotificationRecord,
  PluginRecords,
  ResourceRecord,
  RouteRecord,
  ScheduleRecord,
  SingletonRecord,
  SocketRecord
} from './records.js'
import { defaultTimeZone } from './recurrence.js'
import { resourceFaults, resourceRecord, teardownJob } from './resource-kinds.js'
import { schemaNameFaults } from './schema-components.js'
import { socketFaults, socketRecord } from './socket-record.js'
import {
  migrationsFault,
  named,
  needsFault,
  routeValueFaults,
  scheduleTimeFaults,
  segmentFaults,
  workFaults
} from './value-faults.js'

const methods = ['GET', 'POST', 'PUT', 'PATCH', 'DELETE']
const mebibyte = 1024 * 1024
/** What an anonymous caller may make the platform read. */
const publicBodyLimit = 16 * 1024
const minute = 60_000

/** What a definition may have: a member of another name would say nothing, and nobody would notice. */
const members: { readonly [K in keyof AnyPlugin]-?: true } = Object.assign(Object.create(null), {
  id: true,
  needs: true,
  config: true,
  migrations: true,
  start: true,
  provides: true,
  contributes: true,
  resources: true,
  routes: true,
  channels: true,
  sockets: true,
  jobs: true,
  singletons: true,
  schedules: true,
  events: true,
  notifications: true,
  health: true
} satisfies { readonly [K in keyof AnyPlugin]-?: true })

/** Runs a plugin's declarations and keeps frozen copies; throws a `RecordError` naming every fault. */
export function record(definition: AnyPlugin, given: RecordContext): PluginRecords {
  const faults: string[] = []
  if (definition.id !== given.id)
    faults.push(`definePlugin says id "${definition.id}", plugin.json says "${given.id}"`)
  for (const member of Object.keys(definition))
    if (!(member in members)) faults.push(`definePlugin: ${unknownName(member, Object.keys(members))}`)

  const resources: ResourceRecord[] = []
  const routes: RouteRecord[] = []
  const channels: ChannelRecord[] = []
  const sockets: SocketRecord[] = []
  const jobs: JobRecord[] = []
  const singletons: SingletonRecord[] = []
  const schedules: ScheduleRecord[] = []
  const events: EventRecord[] = []
  const notifications: NotificationRecord[] = []
  const notificationHandlers: NotificationHandler[] = []
  const note = (where: string, list: readonly string[]): boolean => {
    faults.push(...list.map(fault => `${where}: ${fault}`))
    return list.length === 0
  }
  /** Runs one part of the definition; what it throws is reported with its name. */
  const declare = <T>(part: keyof AnyPlugin, declarer: (spec: T) => void): void => {
    const declarations = definition[part] as ((declarer: (spec: T) => void) => void) | undefined
    if (declarations === undefined) return
    if (typeof declarations !== 'function') {
      faults.push(`${part} is not a function`)
      return
    }
    const checked = (spec: T): void => {
      if (typeof spec !== 'object' || spec === null)
        faults.push(`${part}: it declares ${String(spec)}, which is no object`)
      else declarer(spec)
    }
    try {
      declarations.call(definition, Object.assign(checked, declarer))
    } catch (error) {
      faults.push(`${part}: ${faultOf(error).message}`)
    }
  }
  const { needs, migrations, config } = definition as {
    needs?: unknown
    migrations?: unknown
    config?: unknown
  }
  const settings = config === undefined ? null : checkSchema(config)
  faults.push(
    ...([
      needsFault(needs),
      migrationsFault(migrations),
      settings && `the schema of config is not valid: ${settings}`
    ].filter(fault => fault !== null && fault !== '') as string[])
  )
  for (const part of ['start', 'provides', 'contributes', 'health'] as const)
    if (definition[part] !== undefined && typeof definition[part] !== 'function')
      faults.push(`${part} is not a function`)

  declare('resources', (spec: ResourceSpec<object, object>) => {
    if (note(`resource ${spec.kind}`, resourceFaults(given.id, spec, resources)))
      resources.push(resourceRecord(given.id, spec))
  })
  const context = { ...given, kinds: [...(given.kinds ?? []), ...resources.map(({ kind }) => kind)] }
  const declareRoute = (spec: RouteSpec<string, Access, RouteSchema, object>): void => {
    const where = `route ${spec.method} ${spec.url}`
    if (note(where, routeFaults(spec, context, routes))) routes.push(routeRecord(spec, context))
  }
  const declareList = (spec: Parameters<typeof listRoute<object>>[0]): void => {
    declareRoute(listRoute(spec))
  }
  declare('routes', Object.assign(declareRoute, { list: declareList }))
  declare('channels', (spec: ChannelSpec<string, object>) => {
    if (note(`channel ${spec.name}`, channelFaults(spec, context, channels)))
      channels.push(channelRecord(spec, context))
  })
  declare('sockets', (spec: SocketSpec<string, object>) => {
    if (note(`socket ${spec.url}`, socketFaults(spec, context, sockets)))
      sockets.push(socketRecord(spec, context))
  })
  declare('jobs', (spec: JobSpec<never, object>) => {
    const clash = jobs.some(job => job.name === spec.name)
    const isKernels = spec.name === teardownJob && resources.some(({ removal }) => removal !== undefined)
    if (
      note(`job ${spec.name}`, [
        ...workFaults(context.id, spec),
        ...(clash ? ['declared twice'] : []),
        ...(isKernels ? ['the kernel has a job of this name for the removal of its resources'] : [])
      ])
    ) {
      jobs.push(
        Object.freeze({
          name: spec.name,
          lane: spec.lane ?? 'short',
          attempts: spec.attempts ?? 5,
          timeoutMs: spec.timeoutMs ?? 5 * minute,
          waitsForTenants: spec.waitsForTenants === true,
          run: spec.run as JobRecord['run']
        })
      )
    }
  })
  declare('singletons', (spec: SingletonSpec<object>) => {
    const clash = singletons.some(other => other.name === spec.name)
    const missing = typeof spec.run === 'function' ? [] : ['it has no function run']
    if (
      note(`singleton ${spec.name}`, [...named(spec.name), ...missing, ...(clash ? ['declared twice'] : [])])
    )
      singletons.push(Object.freeze({ name: spec.name, run: spec.run }))
  })
  declare('schedules', (spec: ScheduleSpec<object>) => {
    if (note(`schedule ${spec.name}`, scheduleFaults(spec, schedules, context.id)))
      schedules.push(scheduleRecord(spec))
  })
  const listen = (event: { readonly id: unknown }, handler: unknown): void => {
    const id = event?.id
    if (typeof id !== 'string' || typeof handler !== 'function')
      faults.push(`events: on(${String(id)}, …) takes an event and a function`)
    else if (`${context.id}:on.${id}`.length > 128) faults.push(`events: the name of ${id} is too long`)
    else events.push(Object.freeze({ eventId: id, handle: handler as EventRecord['handle'] }))
  }
  const listenToNotifications = (handler: unknown): void => {
    if (typeof handler !== 'function') faults.push('events: on.notification(…) takes a function')
    else notificationHandlers.push(handler as NotificationHandler)
  }
  const tell = (event: { readonly id: string }, spec: Parameters<typeof notificationRecord>[2]): void => {
    if (note(`notification ${spec?.type}`, notificationFaults(context, event, spec, notifications)))
      notifications.push(
        frozen(notificationRecord(context.id, event.id, spec), 'what it declares', { name: spec.type })
      )
  }
  // Two arguments, so not by way of `declare`.
  const declarers = {
    events: Object.assign(listen, { notification: listenToNotifications }),
    notifications: tell
  }
  for (const part of ['events', 'notifications'] as const) {
    const declarations = definition[part] as ((declarer: unknown) => void) | undefined
    try {
      if (declarations !== undefined && typeof declarations !== 'function')
        faults.push(`${part} is not a function`)
      else declarations?.call(definition, declarers[part])
    } catch (error) {
      faults.push(`${part}: ${faultOf(error).message}`)
    }
  }

  if (faults.length === 0) faults.push(...schemaNameFaults({ routes, channels }))
  if (faults.length > 0) throw new RecordError(faults.join('; '))
  return Object.freeze({
    resources,
    routes,
    channels,
    sockets,
    jobs,
    singletons,
    schedules,
    events,
    notifications,
    notificationHandlers
  })
}

function routeFaults(
  spec: RouteSpec<string, Access, RouteSchema, object>,
  context: RecordContext,
  earlier: readonly RouteRecord[]
): string[] {
  if (typeof spec.url !== 'string') return ['it has no url']
  const params = paramsOf(spec.url)
  const faults = [...accessFaults(spec.access, params, context.kinds ?? []), ...routeValueFaults(spec)]
  if (!methods.includes(spec.method))
    faults.push(`method "${String(spec.method)}" is none of ${methods.join(', ')}`)
  faults.push(...pathFaults(spec.url, context))
  if (typeof spec.handler !== 'function') faults.push('it has no handler')
  if (typeof spec.summary !== 'string' || spec.summary === '') faults.push('it has no summary')
  if (earlier.some(other => other.method === spec.method && shapeOf(other.url) === shapeOf(spec.url)))
    faults.push('declared twice')
  const { audit, operationId } = spec
  const sameId = earlier.find(other => operationId !== undefined && other.operationId === operationId)
  if (sameId !== undefined)
    faults.push(`its operationId "${operationId}" is the one of ${sameId.method} ${sameId.url}`)
  if (audit?.id !== undefined && 'param' in audit.id && !params.includes(audit.id.param))
    faults.push(`audit names "${audit.id.param}", which is not in the path`)
  const schemas = {
    ...spec.schema?.params,
    query: spec.schema?.query,
    body: spec.schema?.body,
    ...spec.schema?.response
  }
  for (const [name, schema] of Object.entries(schemas)) {
    if (schema === undefined || schema === null) continue
    const fault = checkSchema(schema)
    if (fault !== null) faults.push(`the schema of ${name} is not valid: ${fault}`)
  }
  if (
    spec.access?.kind === 'public' &&
    typeof spec.bodyLimit === 'number' &&
    spec.bodyLimit > publicBodyLimit
  ) {
    faults.push(
      `a public route that takes more than ${publicBodyLimit} bytes says why: bodyLimit: { bytes: ${spec.bodyLimit}, reason: '…' }`
    )
  }
  if (spec.schema?.body !== undefined && spec.body !== undefined && spec.body !== 'json')
    faults.push(`a ${spec.body} body takes no schema`)
  return faults
}

function pathFaults(url: string, { id, builtIn }: RecordContext): string[] {
  // Where a browser begins.
  if (builtIn && url === '/') return []
  // Where Prometheus asks.
  if (builtIn && url === '/metrics') return []
  if (!/^\/(api|healthz)(\/|$)/.test(url) || /[?#*\s]|\/\/|\/$/.test(url))
    return [`"${url}" is not a path under /api`]
  const odd = segmentFaults(url)
  if (odd.length > 0) return odd
  const own = `/api/x/${id}`
  if (builtIn) return url.startsWith('/api/x/') ? ['/api/x/ is for third-party plugins'] : []
  return url === own || url.startsWith(`${own}/`) ? [] : [`a third-party plugin's paths begin with ${own}/`]
}

export function routeRecord(
  spec: RouteSpec<string, Access, RouteSchema, object>,
  { id }: Pick<RecordContext, 'id'>
): RouteRecord {
  const response = spec.schema?.response
  const success = Object.keys(response ?? {})
    .map(Number)
    .filter(status => status >= 200 && status < 300)
    .sort((a, b) => a - b)[0]
  return Object.freeze({
    plugin: id,
    method: spec.method,
    url: spec.url,
    params: Object.freeze(paramsOf(spec.url)),
    access: frozen(spec.access, 'access', spec),
    operationId: spec.operationId,
    summary: spec.summary,
    group: spec.group ?? id,
    documented: spec.documented ?? true,
    // Schemas are not frozen: fastify writes a symbol into them.
    schema:
      spec.schema?.body === undefined
        ? { ...spec.schema }
        : { ...spec.schema, body: strictBody(spec.schema.body) },
    description: spec.description,
    problems: problemsOf(spec),
    responseHeaders: Object.freeze({ ...spec.responseHeaders }),
    produces: spec.produces,
    body: spec.body ?? (spec.schema?.body === undefined ? 'none' : 'json'),
    bodyLimit: bodyLimitOf(spec),
    timeoutMs: spec.timeoutMs ?? 30_000,
    audit: frozen(spec.audit, 'audit', spec),
    limit: frozen(spec.limit, 'limit', spec),
    idempotent: spec.idempotent ?? false,
    successStatus: success ?? 200,
    conditional: isConditional(spec),
    precondition: spec.precondition as RouteRecord['precondition'],
    limitKey: spec.limitKey as RouteRecord['limitKey'],
    version: spec.version as RouteRecord['version'],
    handler: spec.handler as RouteRecord['handler']
  })
}

/** A `GET` that answers a text as it is, and no secret: what shows one is audited. */
const isConditional = ({
  method,
  audit,
  produces,
  version,
  schema
}: RouteSpec<string, Access, RouteSchema, object>): boolean =>
  method === 'GET' &&
  audit === undefined &&
  (produces === undefined || version !== undefined) &&
  (schema?.response === undefined || schema.response[200] != null)

const bodyLimitOf = ({
  bodyLimit,
  access
}: Pick<RouteSpec<string, Access, RouteSchema, object>, 'bodyLimit' | 'access'>): number =>
  (typeof bodyLimit === 'object' ? bodyLimit.bytes : bodyLimit) ??
  (access.kind === 'public' ? publicBodyLimit : mebibyte)

const channelName = /^[a-z][a-z0-9-]*(:[a-z0-9-]+)*(:\{\w+\})?$/
const eventName = /^[a-z][a-z0-9]*(-[a-z0-9]+)*$/

function channelFaults(
  spec: ChannelSpec<string, object>,
  { id, builtIn, kinds = [] }: RecordContext,
  earlier: readonly ChannelRecord[]
): string[] {
  if (typeof spec.name !== 'string') return ['it has no name']
  const param = /\{(\w+)\}$/.exec(spec.name)?.[1]
  const faults = accessFaults(spec.access, param === undefined ? [] : [param], kinds)
  if (spec.access?.kind === 'public')
    faults.push('a channel cannot be public: the socket asks for a credential')
  if (!channelName.test(spec.name))
    faults.push('a name is lower-case words joined by ":", with one {id} at most, at the end')
  if (!builtIn && !spec.name.startsWith(`x:${id}:`))
    faults.push(`a third-party plugin's channels begin with x:${id}:`)
  if (builtIn && spec.name.startsWith('x:')) faults.push('x: is for third-party plugins')
  faults.push(...channelEventFaults(spec), ...currentStateFaults(spec))
  if (earlier.some(other => other.name === spec.name)) faults.push('declared twice')
  return faults
}

/** Its events, and the words that are said of them: whatever their types claim. */
function channelEventFaults({
  events,
  endsWith,
  summary,
  description
}: ChannelSpec<string, object>): string[] {
  if (typeof summary !== 'string' || summary === '') return ['it has no summary']
  if (description !== undefined && typeof description !== 'string') return ['description is text']
  if (
    typeof events !== 'object' ||
    events === null ||
    Array.isArray(events) ||
    Object.keys(events).length === 0
  )
    return ["events has the schema of each event's data: { greeted: greeting }"]
  const wrong = Object.entries(events).flatMap(([event, schema]) => {
    if (!eventName.test(event)) return [`"${event}" is no name of an event: lower-case words joined by "-"`]
    const fault = checkSchema(schema)
    return fault === null ? [] : [`the schema of its event "${event}" is not valid: ${fault}`]
  })
  return endsWith === undefined || Object.hasOwn(events, endsWith)
    ? wrong
    : [...wrong, `endsWith "${endsWith}" is not among its events`]
}

function currentStateFaults({ name, events, current }: ChannelSpec<string, object>): string[] {
  if (current === undefined) return []
  if (typeof current !== 'object' || current === null || typeof current.read !== 'function')
    return ['current is { event, read }']
  if (!name.endsWith('}')) return ['current is for a channel with an id']
  return Object.hasOwn(events ?? {}, current.event)
    ? []
    : [`current tells "${current.event}", which is not among its events`]
}

function channelRecord(spec: ChannelSpec<string, object>, { id }: RecordContext): ChannelRecord {
  const param = /\{(\w+)\}$/.exec(spec.name)?.[1] ?? null
  return Object.freeze({
    plugin: id,
    name: spec.name,
    prefix: spec.name.replace(/\{\w+\}$/, ''),
    param,
    access: frozen(spec.access, 'access', spec),
    events: Object.freeze({ ...spec.events }),
    endsWith: spec.endsWith,
    summary: spec.summary,
    description: spec.description,
    source: spec.source,
    current: spec.current === undefined ? undefined : Object.freeze({ ...spec.current })
  })
}

function scheduleFaults(
  spec: ScheduleSpec<object>,
  earlier: readonly ScheduleRecord[],
  plugin: string
): string[] {
  const faults = [...workFaults(plugin, spec), ...scheduleTimeFaults(spec)]
  if (earlier.some(other => other.name === spec.name)) faults.push('declared twice')
  return faults
}

function scheduleRecord(spec: ScheduleSpec<object>): ScheduleRecord {
  return Object.freeze({
    name: spec.name,
    cron: spec.cron,
    timeZone: spec.timeZone ?? defaultTimeZone,
    missed: spec.missed ?? 'skip',
    lane: spec.lane ?? 'short',
    attempts: spec.attempts ?? 1,
    timeoutMs: spec.timeoutMs ?? 5 * minute,
    run: spec.run
  })
}
