import { type Document, schemaChanges, type Writer } from './schema-changes.js'

type Json = Readonly<Record<string, any>>

/** What a client of the release before meets otherwise, by operation or channel, and what of it. */
export interface BreakingChange {
  /** `GET /api/projects`, or `channel build-logs:{deploymentId}`. */
  readonly of: string
  readonly what: string
}
interface Descriptions {
  readonly openapi: Json
  readonly asyncapi: Json
}

const scopes = ['metrics', 'read', 'deploy', 'write']

/** Everything in which the descriptions of now break what those before have promised. */
export const breakingChanges = (before: Descriptions, now: Descriptions): BreakingChange[] => [
  ...operationsOf(before.openapi).flatMap(([name, old]) => {
    const fresh = operationOf(now.openapi, name)
    return tell(
      name,
      fresh === undefined ? ['is gone'] : operationChanges(before.openapi, old, now.openapi, fresh)
    )
  }),
  ...channelsOf(before.asyncapi).flatMap(([name, old]) => {
    const fresh = channelsOf(now.asyncapi).find(([other]) => other === name)?.[1]
    return tell(
      name,
      fresh === undefined ? ['is gone'] : channelChanges(before.asyncapi, old, now.asyncapi, fresh)
    )
  })
]

const tell = (of: string, changes: readonly string[]): BreakingChange[] =>
  [...new Set(changes)].map(what => ({ of, what }))

const operationsOf = ({ paths }: Json): Array<[name: string, operation: Json]> =>
  Object.entries<Json>(paths).flatMap(([path, methods]) =>
    Object.entries<Json>(methods).map(([method, operation]): [string, Json] => [
      `${method.toUpperCase()} ${path}`,
      operation
    ])
  )
function operationOf({ paths }: Json, name: string): Json | undefined {
  const [method = '', path = ''] = name.split(' ')
  return paths[path]?.[method.toLowerCase()]
}

/** A part of a description, be it written out or a reference. */
function partOf(document: Json, part: Json): Json {
  const [kind = '', name = ''] = (part.$ref ?? '').replace('#/components/', '').split('/')
  return part.$ref === undefined ? part : document.components[kind][name]
}

function operationChanges(before: Document & Json, old: Json, now: Document & Json, fresh: Json): string[] {
  const schemas = (a: Json | undefined, b: Json | undefined, writer: Writer): string[] =>
    schemaChanges({ document: before, schema: a }, { document: now, schema: b }, writer)
  const parameters = (document: Json, operation: Json): Json[] =>
    operation.parameters.map((part: Json) => partOf(document, part))
  const isSame = (a: Json, b: Json): boolean => a.name === b.name && a.in === b.in
  const [from, to] = [parameters(before, old), parameters(now, fresh)]
  return [
    ...(old.operationId === fresh.operationId
      ? []
      : [`is called ${fresh.operationId} instead of ${old.operationId}`]),
    ...accessChanges(old, fresh),
    ...from.flatMap(parameter => {
      const other = to.find(one => isSame(one, parameter))
      return other === undefined
        ? [`takes no \`${parameter.name}\` any more`]
        : schemas(parameter.schema, other.schema, 'client').map(change => `${parameter.name}: ${change}`)
    }),
    ...to
      .filter(one => isRequired(one) && !from.some(other => isSame(other, one) && isRequired(other)))
      .map(({ name }) => `\`${name}\` is required now`),
    ...Object.entries<Json>(old.requestBody?.content ?? {}).flatMap(([type, { schema }]) => {
      const other = fresh.requestBody?.content?.[type]
      return other === undefined
        ? [`takes no ${type} any more`]
        : schemas(schema, other.schema, 'client').map(change => `body: ${change}`)
    }),
    ...answerChanges(before, old, now, fresh, schemas),
    ...codeChanges(old, fresh)
  ]
}

const isRequired = ({ required, 'x-required': wanted }: Json): boolean => required === true || wanted === true

function answerChanges(
  before: Json,
  old: Json,
  now: Json,
  fresh: Json,
  schemas: (a: Json | undefined, b: Json | undefined, writer: Writer) => string[]
): string[] {
  return Object.entries<Json>(old.responses)
    .filter(([status]) => Number(status) < 400)
    .flatMap(([status, part]) => {
      if (fresh.responses[status] === undefined) return [`answers no ${status} any more`]
      const [answer, other] = [partOf(before, part), partOf(now, fresh.responses[status])]
      const headers = Object.keys(answer.headers ?? {}).filter(name => other.headers?.[name] === undefined)
      return [
        ...headers.map(name => `${status} has no \`${name}\` any more`),
        ...Object.entries<Json>(answer.content ?? {}).flatMap(([type, { schema }]) =>
          other.content?.[type] === undefined
            ? [`${status} is no ${type} any more`]
            : schemas(schema, other.content[type].schema, 'platform').map(change => `${status}: ${change}`)
        )
      ]
    })
}

/** Programs tell errors apart by their codes. */
const codeChanges = (old: Json, fresh: Json): string[] =>
  Object.entries<string[]>(old['x-codes'] ?? {}).flatMap(([status, codes]) =>
    codes
      .filter(code => fresh['x-codes']?.[status]?.includes(code) !== true)
      .map(code => `refuses nothing with ${status} \`${code}\` any more`)
  )

/** Who might call it, and may not any more. */
function accessChanges(old: Json, fresh: Json): string[] {
  const ways = ({ security }: Json): { isPublic: boolean; scope: string | undefined } => ({
    isPublic: security.length === 0,
    scope: security.find((way: Json) => way.token !== undefined)?.token[0]
  })
  const [from, to] = [ways(old), ways(fresh)]
  return [
    ...(from.isPublic && !to.isPublic ? ['is public no longer'] : []),
    ...(from.scope !== undefined && !to.isPublic && !includes(from.scope, to.scope)
      ? [`takes ${to.scope === undefined ? 'no token' : `no token with less than ${to.scope}`} any more`]
      : []),
    ...roleChanges(old, fresh)
  ]
}
const includes = (had: string, wanted: string | undefined): boolean =>
  wanted !== undefined && scopes.indexOf(had) >= scopes.indexOf(wanted)
const roleChanges = (old: Json, fresh: Json): string[] =>
  fresh['x-role'] !== undefined && old['x-role'] === undefined
    ? [`is for the role ${fresh['x-role']} only`]
    : []

const channelsOf = ({ channels }: Json): Array<[name: string, channel: Json]> =>
  Object.values<Json>(channels).map((channel): [string, Json] => [`channel ${channel.title}`, channel])

function channelChanges(before: Json, old: Json, now: Json, fresh: Json): string[] {
  return [
    ...(old['x-scope'] !== undefined && !includes(old['x-scope'], fresh['x-scope'])
      ? [`is not for tokens with ${old['x-scope']} any more`]
      : []),
    ...roleChanges(old, fresh),
    ...Object.entries<Json>(old.messages).flatMap(([event, part]) => {
      if (fresh.messages[event] === undefined) return [`has no event \`${event}\` any more`]
      const isAsked = partOf(before, part).payload.properties.action !== undefined
      return schemaChanges(
        { document: before, schema: partOf(before, part).payload },
        { document: now, schema: partOf(now, fresh.messages[event]).payload },
        isAsked ? 'client' : 'platform'
      ).map(change => `${event}: ${change}`)
    })
  ]
}
