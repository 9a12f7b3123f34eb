import { resolved } from './schema.js'

/** Reading the description of the API: its operations and its schemas, as the page shows them. */

/** A part that may be a reference, with words of its own. */
const part = ({ $ref: reference, ...rest }, parts = {}) => ({
  ...(reference === undefined ? {} : parts[reference.slice(reference.lastIndexOf('/') + 1)]),
  ...rest
})

/** The operations of an OpenAPI description. */
export function operationsOf({ paths, components }) {
  const whole = schema => resolved(schema, components.schemas)
  return Object.entries(paths).flatMap(([path, methods]) =>
    Object.entries(methods).map(([method, operation]) => {
      const { operationId: id, summary, description, tags, security, requestBody } = operation
      const parameters = (operation.parameters ?? []).map(one => part(one, components.parameters))
      const answers = Object.entries(operation.responses).map(([status, answer]) => [
        status,
        part(answer, components.responses)
      ])
      const scope = security.find(way => way.token !== undefined)?.token[0]
      const [bodyType, bodyContent] = Object.entries(requestBody?.content ?? {})[0] ?? []
      return {
        id,
        method,
        path,
        summary,
        description,
        parameters: parameters.map(parameter => ({ ...parameter, schema: whole(parameter.schema) })),
        scope,
        group: tags[0],
        plugin: operation['x-plugin'],
        isPublic: security.length === 0,
        isSessionOnly: security.length > 0 && scope === undefined,
        isAdmin: operation['x-role'] === 'admin',
        pins: pinsOf(description),
        limit: operation['x-rate-limit'],
        type: path.startsWith('/api/ws')
          ? 'websocket'
          : answers.some(([, { content = {} }]) => content['text/event-stream'] !== undefined)
            ? 'event stream'
            : undefined,
        body: bodyType === undefined ? undefined : { type: bodyType, schema: whole(bodyContent.schema) },
        responses: answers.map(([status, { description: text, content = {}, headers = {} }]) => {
          const [type, value] = Object.entries(content)[0] ?? []
          return {
            status,
            description: text,
            type,
            schema: whole(value?.schema),
            headers,
            codes: operation['x-codes']?.[status] ?? []
          }
        })
      }
    })
  )
}

/** What becomes of a token that is pinned to projects. */
function pinsOf(description) {
  if (description.includes('A token pinned to projects is refused')) return 'never pinned'
  if (description.includes('sees those only')) return 'pins filter'
  return description.includes('pinned to other projects is refused') ? 'pins apply' : undefined
}

/** The named schemas of an OpenAPI description, by name. */
export const schemasOf = ({ components }) =>
  Object.entries(components.schemas)
    .sort(([a], [b]) => (a < b ? -1 : 1))
    .map(([name, schema]) => ({
      id: `schema/${name}`,
      name,
      description: schema.description ?? '',
      schema: resolved(schema, components.schemas)
    }))

/** The channels of an AsyncAPI description that can be heard. */
export function channelsOf({ channels, components }) {
  return Object.entries(channels)
    .filter(([, { address }]) => address !== null)
    .map(([id, channel]) => ({
      id: `channel/${id}`,
      address: channel.address,
      summary: channel.summary,
      description: channel.description,
      scope: channel['x-scope'],
      isAdmin: channel['x-role'] === 'admin',
      plugin: channel['x-plugin'],
      parameters: Object.entries(channel.parameters ?? {}).map(([name, { description }]) => ({
        name,
        description
      })),
      events: Object.keys(channel.messages).map(name => {
        const { summary, payload } = part(channel.messages[name], components.messages)
        return { name, summary, schema: resolved(payload.properties.data, components.schemas) }
      })
    }))
}
