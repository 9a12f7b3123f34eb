import type { ProblemKind, TSchema } from 'busbar/sdk'
import type { Access } from '../../sdk/access.js'
import type { BodyKind, Method, RouteLimit, RouteSchema } from '../../sdk/route.js'
import { accessText, idText, securityOf } from './access-text.js'
import { describeGroups } from './groups.js'
import { describeResponses } from './responses.js'
import { namePrefix, SchemaComponents } from './schema-components.js'
import { SharedParts } from './shared-parts.js'

/** A declared route with what was left out of its declaration filled in, as far as it is described. */
export interface DescribedRoute {
  readonly plugin: string
  readonly method: Method
  readonly url: string
  /** In the order of the path. */
  readonly params: readonly string[]
  readonly access: Access
  readonly operationId: string | undefined
  readonly summary: string
  readonly group: string
  /** False for files of pages, which the description leaves out. */
  readonly documented: boolean
  readonly schema: RouteSchema
  readonly description: string | undefined
  readonly problems: readonly ProblemKind[]
  readonly responseHeaders: Readonly<Record<string, TSchema>>
  readonly produces: string | undefined
  readonly body: BodyKind
  readonly limit: RouteLimit | undefined
  readonly idempotent: boolean
  /** The status of an answer that is a plain value. */
  readonly successStatus: number
  /** Its successes have an `ETag`, and 304 is the answer to who has the one that would be sent. */
  readonly conditional: boolean
}

type Json = Record<string, unknown>

const title = 'Busbar API'
/** The version of the description, as the specification fixes it; the platform's own is in /api/version. */
const descriptionVersion = '1.0.0'

/** The OpenAPI 3.1.0 description of the routes that are being served, from the records the guard reads. */
export function describeApi(routes: readonly DescribedRoute[]): Json {
  const paths: Record<string, Json> = {}
  const components = new SchemaComponents()
  const sorted = routes
    .filter(({ documented }) => documented)
    .sort((a, b) => (a.url === b.url ? 0 : a.url < b.url ? -1 : 1))
  const operations = sorted.map(route => ({ route, operation: describeRoute(route, components) }))
  const shared = new SharedParts(operations.map(({ operation }) => operation))
  for (const { route, operation } of operations) {
    const path = route.url.replace(/:(\w+)/g, '{$1}')
    paths[path] = { ...paths[path], [route.method.toLowerCase()]: shared.refer(operation) }
  }
  return {
    openapi: '3.1.0',
    info: {
      title,
      version: descriptionVersion,
      license: { name: 'MIT', identifier: 'MIT' },
      contact: { name: 'The administrators of this instance' },
      description:
        'Every operation of this instance, as it is served now. No request field is marked required; the fields that are, are listed in `x-required`. Fields of a body that are not described are ignored. The codes by which an operation tells errors of one status apart are listed by status in its `x-codes`; there may be others. What is no valid HTTP is answered 400, 408 or 431 on any path, a path that no running plugin serves 404, and a method that a path does not have 405, with those that it has in `Allow`. Answers to callers with a credential carry `X-RateLimit-Limit`, `X-RateLimit-Remaining` and `X-RateLimit-Reset` (a time in seconds since 1970). Answers are sent in the content coding that `Accept-Encoding` asks for, `br` or `gzip`, but for those that are short, that stream, or that show a secret.'
    },
    servers: [{ url: '/' }],
    tags: describeGroups(sorted),
    paths,
    components: {
      securitySchemes: {
        session: {
          type: 'apiKey',
          in: 'cookie',
          name: 'token',
          description: 'The dashboard session. Requests that change something also carry `X-CSRF-Token`.'
        },
        token: {
          type: 'http',
          scheme: 'bearer',
          description:
            'A personal access token: `Authorization: Bearer busbar_pat_…`. Scopes: metrics < read < deploy < write.'
        }
      },
      schemas: { Error: errorSchema, ...components.schemas },
      parameters: shared.parameters,
      responses: shared.responses
    }
  }
}

const errorSchema = {
  type: 'object',
  properties: {
    error: {
      type: 'string',
      description: 'A sentence for a person that says what is wrong and what to do. Its words may change.'
    },
    code: {
      type: 'string',
      description:
        'What a program tells errors apart by, such as `E_NOT_FOUND`: it stays as it is. Those of an operation are told with its statuses.'
    },
    remedy: {
      type: 'string',
      description:
        'What the caller can do about it, where that is not plain. But for a few short ones, `error` says it too, at its end.'
    },
    field: {
      type: 'string',
      description:
        'The field that is wrong, with its place: `vars/0/key`. The first one where several are; empty for the whole body.'
    },
    faults: {
      type: 'array',
      description: 'All that a schema finds wrong, at most 20, one for each field.',
      items: {
        type: 'object',
        properties: {
          field: { type: 'string', description: 'As `field` above.' },
          error: { type: 'string', description: 'A sentence that says what is wrong with it.' }
        },
        required: ['field', 'error']
      }
    }
  },
  required: ['error', 'code'],
  description: 'Why a request was refused. Some errors have fields besides.'
}

/** Without a declared one, `GET /api/projects/{projectId}/env` is `get_projects_projectId_env`: unique and stable. */
const operationIdOf = (route: DescribedRoute): string =>
  route.operationId === undefined ? madeOf(route) : namePrefix(route) + route.operationId

const madeOf = ({ method, url }: DescribedRoute): string =>
  `${method.toLowerCase()}_${url
    .replace(/^\/api\//, '')
    .replace(/[:/.-]+/g, '_')
    .replace(/^_/, '')}`

function describeRoute(route: DescribedRoute, components: SchemaComponents) {
  const { access, schema } = route
  return {
    operationId: operationIdOf(route),
    summary: route.summary,
    description: [route.description, accessText(access)].filter(text => text !== undefined).join('\n\n'),
    tags: [route.group],
    security: securityOf(access),
    ...(access.kind !== 'public' && access.role !== undefined ? { 'x-role': access.role } : {}),
    'x-plugin': route.plugin,
    ...(route.limit === undefined
      ? {}
      : {
          'x-rate-limit': { max: route.limit.max, windowSeconds: route.limit.windowSeconds }
        }),
    parameters: [
      ...pathParameters(route),
      ...queryParameters(schema.query, components),
      ...headerParameters(route)
    ],
    ...requestBody(route, components),
    responses: describeResponses(route, components)
  }
}

function pathParameters({ params, schema, access }: DescribedRoute): Json[] {
  return params.map(name => {
    const { description = idText(name, access), ...rest } =
      schema.params?.[name] ?? (name.endsWith('Id') ? { type: 'string', format: 'uuid' } : { type: 'string' })
    return { name, in: 'path', required: true, schema: rest, ...(description && { description }) }
  })
}

function queryParameters(query: DescribedRoute['schema']['query'], components: SchemaComponents): Json[] {
  const properties = (query?.properties ?? {}) as Record<string, Json>
  const required = (query?.required ?? []) as string[]
  return Object.entries(properties).map(([name, { description, ...schema }]) => ({
    name,
    in: 'query',
    schema: components.describe(schema, 'body', ''),
    ...(description === undefined ? {} : { description }),
    ...(required.includes(name) ? { 'x-required': true } : {})
  }))
}

const headerParameters = ({ idempotent, conditional }: DescribedRoute): Json[] => [
  ...(conditional
    ? [
        {
          name: 'If-None-Match',
          in: 'header',
          schema: { type: 'string' },
          description: 'The `ETag` of an answer that you have: 304 says that it is still right.'
        }
      ]
    : []),
  ...(idempotent
    ? [
        {
          name: 'Idempotency-Key',
          in: 'header',
          schema: { type: 'string', maxLength: 255 },
          description:
            'A text of your own for this request, such as a UUID. When the same request is sent again with it within 24 hours, nothing is done twice: the first answer is sent again, with `Idempotent-Replayed: true`. With another body it is refused (409).'
        }
      ]
    : [])
]

function requestBody(route: DescribedRoute, components: SchemaComponents): Json {
  const { schema, body } = route
  if (schema.body !== undefined) {
    const { description } = schema.body
    const content = {
      'application/json': { schema: components.describe(schema.body, 'body', namePrefix(route)) }
    }
    return { requestBody: { ...(description === undefined ? {} : { description }), content } }
  }
  if (body === 'raw' || body === 'stream')
    return { requestBody: { content: { '*/*': { schema: { type: 'string', format: 'binary' } } } } }
  return {}
}
