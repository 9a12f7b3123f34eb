/** What the description of the API says of every operation of the platform, so that a client can be written from it alone. */
import { existsSync, readdirSync } from 'node:fs'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import type { ProblemKind } from 'busbar/sdk'
import { test } from 'tap'
import { describeApi } from '../../core/declarations/openapi.js'
import { schemaConflicts } from '../../core/declarations/schema-components.js'
import { validatorOf } from '../../core/schemas/schemas.js'
import { builtInRoutes, builtInSockets, describeBuiltInChannels } from '../../scripts/client/describe.js'

type Json = Readonly<Record<string, any>>

const root = join(import.meta.dirname, '../..')
const routes = await builtInRoutes(root)
const sockets = await builtInSockets(root)
const api: any = describeApi(routes)

/** A part of the description, be it written out or a reference with words of its own. */
function part({ $ref: reference, ...rest }: Json): Json {
  const [kind = '', name = ''] = (reference ?? '').replace('#/components/', '').split('/')
  return { ...api.components[kind]?.[name], ...rest }
}

/** Every operation, as `POST /api/projects`. */
const operations = (): ReadonlyArray<readonly [name: string, operation: Json]> =>
  Object.entries<Json>(api.paths).flatMap(([path, methods]) =>
    Object.entries<Json>(methods).map(
      ([method, operation]) =>
        [
          `${method.toUpperCase()} ${path}`,
          {
            ...operation,
            parameters: operation.parameters.map(part),
            responses: Object.fromEntries(
              Object.entries<Json>(operation.responses).map(([status, response]) => [status, part(response)])
            )
          }
        ] as const
    )
  )

/** A sentence, or several: not a name again. */
const tells = (text: unknown): boolean =>
  typeof text === 'string' && text.length >= 10 && /[.)]$/.test(text) && text.includes(' ')

/** The fields in a schema that nothing is said of. What it refers to is looked at by itself. */
function silentFields(schema: Json | undefined, where: string): string[] {
  if (typeof schema !== 'object' || schema === null) return []
  const fields = Object.entries<Json>(schema.properties ?? {})
  return [
    ...fields.filter(([, field]) => !tells(field.description)).map(([name]) => `${where}.${name}`),
    ...fields.flatMap(([name, field]) => silentFields(field, `${where}.${name}`)),
    ...[schema.items, ...(schema.anyOf ?? []), ...(schema.allOf ?? [])].flatMap(inner =>
      silentFields(inner, `${where}[]`)
    )
  ]
}

const contentsOf = (content: Json | undefined): Json[] =>
  Object.values<Json>(content ?? {}).map(({ schema }) => schema)

test('the built-in plugins and the kernel agree about the names of schemas', t => {
  const byPlugin = [...new Set(routes.map(({ plugin }) => plugin))].map(id => ({
    routes: routes.filter(({ plugin }) => plugin === id)
  }))
  for (const one of byPlugin)
    t.same(
      schemaConflicts(
        one,
        byPlugin.filter(other => other !== one)
      ),
      []
    )
  t.end()
})

test('every field of every body and answer says what it is', t => {
  const silent = operations().flatMap(([name, { requestBody, responses }]) => [
    ...contentsOf(requestBody?.content).flatMap(schema => silentFields(schema, `${name} body`)),
    ...Object.entries<Json>(responses).flatMap(([status, { content }]) =>
      contentsOf(content).flatMap(schema => silentFields(schema, `${name} ${status}`))
    )
  ])
  const inComponents = Object.entries<Json>(api.components.schemas).flatMap(([name, schema]) =>
    silentFields(schema, name)
  )
  t.same([...silent, ...inComponents], [])
  t.end()
})

test('every operation that answers a list takes a page of it, and tells how many rows there are', t => {
  const lists = operations().filter(([name, { responses }]) => {
    const schema = responses[200]?.content?.['application/json']?.schema ?? {}
    const of = schema.$ref === undefined ? schema : api.components.schemas[schema.$ref.split('/').at(-1)]
    return name.startsWith('GET ') && of.type === 'array'
  })
  t.ok(lists.length > 10)
  for (const [name, { parameters, responses }] of lists) {
    const query = parameters.filter((one: Json) => one.in === 'query').map((one: Json) => one.name)
    t.ok(query.includes('limit') && query.includes('offset'), `${name}: limit and offset`)
    t.ok('X-Total-Count' in (responses[200].headers ?? {}), `${name}: X-Total-Count`)
  }
  t.end()
})

test('what answers JSON can be asked for again by its tag, unless it shows a secret', t => {
  for (const [name, { responses }] of operations()) {
    const record = routes.find(({ method, url }) => `${method} ${url.replace(/:(\w+)/g, '{$1}')}` === name)
    const isJson = responses[200]?.content?.['application/json'] !== undefined
    const reveals = name.endsWith('/reveal') || name.includes('/api/auth/totp/')
    if (!name.startsWith('GET ') || !isJson) continue
    t.equal('304' in responses, !reveals, name)
    t.equal('ETag' in (responses[200].headers ?? {}), !reveals, name)
    t.equal(record?.conditional, !reveals)
  }
  t.end()
})

test('every named schema says what it is', t => {
  const silent = Object.entries<Json>(api.components.schemas).filter(
    ([, { description }]) => !tells(description)
  )
  t.same(
    silent.map(([name]) => name),
    []
  )
  t.end()
})

test('every answer with fields has a name, and so has every body', t => {
  const unnamed = operations().flatMap(([name, { requestBody, responses }]) =>
    [
      ...contentsOf(requestBody?.content),
      ...Object.values<Json>(responses).flatMap(({ content }) => contentsOf(content))
    ]
      .map(schema => schema.items ?? schema)
      .filter(schema => schema.properties !== undefined)
      .map(() => name)
  )
  t.same(unnamed, [])
  t.end()
})

test('every parameter and every header says what it is', t => {
  const silent = operations().flatMap(([name, { parameters, responses }]) => [
    ...(parameters as Json[])
      .filter(({ description }) => !tells(description))
      .map(parameter => `${name} ${parameter.in} ${parameter.name}`),
    ...Object.values<Json>(responses).flatMap(({ headers }) =>
      Object.entries<Json>(headers ?? {})
        .filter(([, { description }]) => !tells(description))
        .map(([header]) => `${name} ${header}`)
    )
  ])
  t.same(silent, [])
  t.end()
})

test('every text that a client writes into a query has an example, unless it is an id or its values are listed', t => {
  const silent = operations().flatMap(([name, { parameters }]) =>
    (parameters as Json[])
      .filter(
        ({ in: place, name, schema }) =>
          !/(^|_)id$/.test(name) && place === 'query' && schema.type === 'string' && schema.enum === undefined
      )
      .filter(({ schema }) => schema.pattern === undefined && schema.examples === undefined)
      .map(parameter => `${name} ${parameter.name}`)
  )
  t.same(silent, [])
  t.end()
})

test('every channel says what it tells and when it ends, and every field of its messages what it is', async t => {
  const { channels, components } = await describeBuiltInChannels(root)
  t.ok(Object.keys(channels).length > 3)
  for (const { title, summary, description } of Object.values<Json>(channels))
    t.ok(tells(summary) && tells(description), title)
  for (const [name, { payload, summary }] of Object.entries<Json>(components.messages)) {
    t.ok(tells(summary), name)
    t.same(
      silentFields(payload, name).filter(field => field !== `${name}.data`),
      []
    )
  }
  for (const [name, schema] of Object.entries<Json>(components.schemas)) {
    t.ok(tells(schema.description), name)
    t.same(silentFields(schema, name), [])
  }
})

test('every body says what it is, and has examples that pass its validation', t => {
  for (const { method, url, schema } of routes) {
    if (schema.body === undefined) continue
    const name = `${method} ${url}`
    t.ok(tells(schema.body.description), `${name} says what its body is`)
    const examples = (schema.body.examples ?? []) as unknown[]
    t.ok(examples.length > 0, `${name} has an example`)
    const valid = validatorOf(schema.body, 'body')
    for (const example of examples) {
      const sent = structuredClone(example)
      t.ok(valid(sent), `${name}: ${JSON.stringify(valid.errors)}`)
      t.same(sent, example, `${name} ignores no field of its example`)
    }
  }
  t.end()
})

test('every operation says what it does, or its summary is enough', t => {
  // A resource by its id: there is nothing to add.
  const plain = /^Get \w+( \w+)?$/
  const silent = routes
    .filter(
      ({ documented, description, summary }) => documented && !tells(description) && !plain.test(summary)
    )
    .map(({ method, url }) => `${method} ${url}`)
  t.same(silent, [])
  t.end()
})

test('every WebSocket of a plugin says what it is, and its parameters', t => {
  t.ok(sockets.length > 0)
  for (const { url, operationId, summary, description, params, schema } of sockets) {
    t.ok(operationId !== undefined && summary !== '' && tells(description), url)
    for (const param of params) t.ok(tells(schema.params?.[param]?.description), `${url} ${param}`)
  }
  t.end()
})

/** Tables of which an answer of another plugin, or none, is made. */
const noAnswers: Readonly<Record<string, string>> = {
  builds: 'mostly why a build failed, which its deployment says',
  direct: 'why a deploy failed',
  mail: 'why a job failed',
  platform: 'what an update of the platform is told, which no operation asks for',
  'runtime-docker': 'what the engine refuses, which the contract containers declares'
}

test('every problem that an operation can be refused with is declared by one', async t => {
  const declared = new Set(
    [...routes, ...sockets].flatMap(({ problems }) => problems.map(({ code }) => code))
  )
  const ids = readdirSync(join(root, 'plugins')).filter(
    id => noAnswers[id] === undefined && existsSync(join(root, 'plugins', id, 'problems.ts'))
  )
  for (const id of ids) {
    const { problems = {} } = (await import(
      pathToFileURL(join(root, 'plugins', id, 'problems.ts')).href
    )) as { problems?: Readonly<Record<string, ProblemKind>> }
    const missing = Object.entries(problems).filter(([, { code }]) => !declared.has(code))
    t.same(
      missing.map(([name]) => name),
      [],
      id
    )
  }
})
