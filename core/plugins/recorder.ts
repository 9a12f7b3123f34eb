import type { Access, AnyPlugin, ChannelSpec, EventDeclarer, JobSpec, RouteSchema, RouteSpec, SingletonSpec, SocketSpec } from 'busbar/sdk'
import { accessFaults } from '../../sdk/access-faults.js'
import { checkSchema, strictBody } from '../http/schemas.js'
import type { ChannelRecord, EventRecord, JobRecord, PluginRecords, RouteRecord, SingletonRecord, SocketRecord } from './records.js'

/** Everything that is wrong with a plugin's declarations, in one message. */
export class RecordError extends Error {}

export interface RecordContext {
  readonly id: string
  /** Third-party plugins keep to `/api/x/<id>/` and `x:<id>:`. */
  readonly builtIn: boolean
}

const methods = ['GET', 'POST', 'PUT', 'PATCH', 'DELETE']
const mebibyte = 1024 * 1024
const minute = 60_000

/** Runs a plugin's declarations and keeps frozen copies; throws a `RecordError` naming every fault. */
export function record (definition: AnyPlugin, context: RecordContext): PluginRecords {
  const faults: string[] = []
  if (definition.id !== context.id) faults.push(`definePlugin says id "${definition.id}", plugin.json says "${context.id}"`)

  const routes: RouteRecord[] = []
  const channels: ChannelRecord[] = []
  const sockets: SocketRecord[] = []
  const jobs: JobRecord[] = []
  const singletons: SingletonRecord[] = []
  const events: EventRecord[] = []
  const note = (where: string, list: readonly string[]): boolean => {
    faults.push(...list.map(fault => `${where}: ${fault}`))
    return list.length === 0
  }

  definition.routes?.((spec: RouteSpec<string, Access, RouteSchema, object>) => {
    const where = `route ${spec.method} ${spec.url}`
    if (note(where, routeFaults(spec, context, routes))) routes.push(routeRecord(spec, context))
  })
  definition.channels?.((spec: ChannelSpec<string, object>) => {
    if (note(`channel ${spec.name}`, channelFaults(spec, context, channels))) channels.push(channelRecord(spec, context))
  })
  definition.sockets?.((spec: SocketSpec<string, object>) => {
    if (note(`socket ${spec.url}`, socketFaults(spec, context))) {
      sockets.push(Object.freeze({
        plugin: context.id, url: spec.url, params: paramsOf(spec.url), access: frozen(spec.access),
        summary: spec.summary, accept: spec.accept, handler: spec.handler
      }))
    }
  })
  definition.jobs?.((spec: JobSpec<never, object>) => {
    const clash = jobs.some(job => job.name === spec.name)
    if (note(`job ${spec.name}`, [...named(spec.name), ...(clash ? ['declared twice'] : [])])) {
      jobs.push(Object.freeze({
        name: spec.name, lane: spec.lane ?? 'short', attempts: spec.attempts ?? 5, timeoutMs: spec.timeoutMs ?? 5 * minute,
        run: spec.run as JobRecord['run']
      }))
    }
  })
  definition.singletons?.((spec: SingletonSpec<object>) => {
    if (note(`singleton ${spec.name}`, named(spec.name))) singletons.push(Object.freeze({ name: spec.name, run: spec.run }))
  })
  const declareEvent: EventDeclarer<object> = (event, handler) => {
    events.push(Object.freeze({ eventId: event.id, handle: handler as EventRecord['handle'] }))
  }
  definition.events?.(declareEvent)

  if (faults.length > 0) throw new RecordError(faults.join('; '))
  return Object.freeze({ routes, channels, sockets, jobs, singletons, events })
}

export const paramsOf = (url: string): string[] => [...url.matchAll(/:(\w+)/g)].map(match => match[1] ?? '')

function routeFaults (spec: RouteSpec<string, Access, RouteSchema, object>, context: RecordContext, earlier: readonly RouteRecord[]): string[] {
  const params = paramsOf(spec.url)
  const faults = accessFaults(spec.access, params)
  if (!methods.includes(spec.method)) faults.push(`method "${String(spec.method)}" is none of ${methods.join(', ')}`)
  faults.push(...pathFaults(spec.url, context))
  if (typeof spec.handler !== 'function') faults.push('it has no handler')
  if (typeof spec.summary !== 'string' || spec.summary === '') faults.push('it has no summary')
  if (earlier.some(other => other.method === spec.method && shapeOf(other.url) === shapeOf(spec.url))) faults.push('declared twice')
  const { audit } = spec
  if (audit?.id !== undefined && 'param' in audit.id && !params.includes(audit.id.param)) faults.push(`audit names "${audit.id.param}", which is not in the path`)
  const schemas = { ...spec.schema?.params, query: spec.schema?.query, body: spec.schema?.body, ...spec.schema?.response }
  for (const [name, schema] of Object.entries(schemas)) {
    if (schema === undefined || schema === null) continue
    const fault = checkSchema(schema)
    if (fault !== null) faults.push(`the schema of ${name} is not valid: ${fault}`)
  }
  if (spec.schema?.body !== undefined && spec.body !== undefined && spec.body !== 'json') faults.push(`a ${spec.body} body takes no schema`)
  return faults
}

function pathFaults (url: string, { id, builtIn }: RecordContext): string[] {
  if (!/^\/(api|healthz)(\/|$)/.test(url) || /[?#*\s]|\/\/|\/$/.test(url)) return [`"${url}" is not a path under /api`]
  const own = `/api/x/${id}`
  if (builtIn) return url.startsWith('/api/x/') ? ['/api/x/ is for third-party plugins'] : []
  return url === own || url.startsWith(`${own}/`) ? [] : [`a third-party plugin's paths begin with ${own}/`]
}

/** Two paths of one shape match the same requests. */
export const shapeOf = (url: string): string => url.replace(/:\w+/g, ':')

export function routeRecord (spec: RouteSpec<string, Access, RouteSchema, object>, { id }: Pick<RecordContext, 'id'>): RouteRecord {
  const response = spec.schema?.response
  const success = Object.keys(response ?? {}).map(Number).filter(status => status >= 200 && status < 300).sort((a, b) => a - b)[0]
  return Object.freeze({
    plugin: id,
    method: spec.method,
    url: spec.url,
    params: Object.freeze(paramsOf(spec.url)),
    access: frozen(spec.access),
    summary: spec.summary,
    group: spec.group ?? id,
    // Schemas are not frozen: fastify writes a symbol into them.
    schema: spec.schema?.body === undefined ? { ...spec.schema } : { ...spec.schema, body: strictBody(spec.schema.body) },
    produces: spec.produces,
    body: spec.body ?? (spec.schema?.body === undefined ? 'none' : 'json'),
    bodyLimit: spec.bodyLimit ?? mebibyte,
    timeoutMs: spec.timeoutMs ?? 30_000,
    audit: frozen(spec.audit),
    limit: frozen(spec.limit),
    idempotent: spec.idempotent ?? false,
    successStatus: success ?? 200,
    handler: spec.handler as RouteRecord['handler']
  })
}

const channelName = /^[a-z][a-z0-9-]*(:[a-z0-9-]+)*(:\{\w+\})?$/

function channelFaults (spec: ChannelSpec<string, object>, { id, builtIn }: RecordContext, earlier: readonly ChannelRecord[]): string[] {
  const param = /\{(\w+)\}$/.exec(spec.name)?.[1]
  const faults = accessFaults(spec.access, param === undefined ? [] : [param])
  if (spec.access?.kind === 'public') faults.push('a channel cannot be public: the socket asks for a credential')
  if (!channelName.test(spec.name)) faults.push('a name is lower-case words joined by ":", with one {id} at most, at the end')
  if (!builtIn && !spec.name.startsWith(`x:${id}:`)) faults.push(`a third-party plugin's channels begin with x:${id}:`)
  if (builtIn && spec.name.startsWith('x:')) faults.push('x: is for third-party plugins')
  if (!Array.isArray(spec.events) || spec.events.length === 0) faults.push('it names no events')
  if (spec.endsWith !== undefined && !spec.events.includes(spec.endsWith)) faults.push(`endsWith "${spec.endsWith}" is not among its events`)
  if (earlier.some(other => other.name === spec.name)) faults.push('declared twice')
  return faults
}

function channelRecord (spec: ChannelSpec<string, object>, { id }: RecordContext): ChannelRecord {
  const param = /\{(\w+)\}$/.exec(spec.name)?.[1] ?? null
  return Object.freeze({
    plugin: id, name: spec.name, prefix: spec.name.replace(/\{\w+\}$/, ''), param, access: frozen(spec.access),
    events: Object.freeze([...spec.events]), endsWith: spec.endsWith, summary: spec.summary, source: spec.source
  })
}

function socketFaults (spec: SocketSpec<string, object>, { id, builtIn }: RecordContext): string[] {
  const faults = accessFaults(spec.access, paramsOf(spec.url))
  const prefix = builtIn ? '/api/ws/' : `/api/ws/x/${id}/`
  if (!spec.url.startsWith(prefix)) faults.push(`a socket's path begins with ${prefix}`)
  if (spec.access?.kind === 'public') faults.push('a socket cannot be public')
  return faults
}

const named = (name: string): string[] => /^[a-z][A-Za-z0-9-]*$/.test(name) ? [] : [`"${name}" is not a name`]

/** A copy of plain data that nobody can change any more. */
const frozen = <T>(data: T): T => deepFreeze(structuredClone(data))

function deepFreeze<T> (value: T): T {
  if (typeof value === 'object' && value !== null) Object.values(Object.freeze(value)).forEach(deepFreeze)
  return value
}
