import type { TSchema } from 'busbar/sdk'
import type { Access } from '../../sdk/access.js'
import { accessText, idText } from './access-text.js'
import { channelNamePrefix, SchemaComponents } from './schema-components.js'

/** A declared channel, as far as it is described. */
export interface DescribedChannel {
  readonly plugin: string
  readonly name: string
  readonly param: string | null
  readonly access: Access
  readonly events: Readonly<Record<string, TSchema>>
  readonly endsWith?: string | undefined
  readonly current?: { readonly event: string } | undefined
  readonly summary: string
  readonly description?: string | undefined
}

type Json = Record<string, unknown>

const title = 'Busbar channels'
const descriptionVersion = '1.0.0'
/** Messages of every connection, whatever its channels. */
const requests = ['subscribe', 'unsubscribe'] as const
const requestWords = {
  subscribe: { summary: 'Subscribe.', description: 'Asks to hear a channel.' },
  unsubscribe: { summary: 'Unsubscribe.', description: 'Asks to hear it no longer.' }
} as const
/** Names of channels have no capitals. */
const connection = 'Connection'

/** The AsyncAPI 3.0.0 description of the channels that can be heard at `/api/ws`, from the records that the hub reads. */
export function describeChannels(channels: readonly DescribedChannel[]): Json {
  const components = new SchemaComponents()
  const sorted = [...channels].sort((a, b) => (a.name < b.name ? -1 : 1))
  const described = sorted.map(channel => ({ channel, messages: describeMessages(channel, components) }))
  return {
    asyncapi: '3.0.0',
    info: {
      title,
      version: descriptionVersion,
      license: { name: 'MIT', url: 'https://spdx.org/licenses/MIT.html' },
      contact: { name: 'The administrators of this instance' },
      tags: [{ name: 'Live', description: 'What is told as it happens.' }],
      description:
        'What this instance tells live, as it is served now. All channels go over one WebSocket, `/api/ws`: their addresses are the names that its messages carry. Subscribe to what you want to hear; nothing is told twice, and what was said before is not told again: the operations of `/api/openapi.json` have it. A subscription lasts while its plugin is turned off and on again.'
    },
    defaultContentType: 'application/json',
    servers: {
      live: {
        host: '{host}',
        pathname: '/api/ws',
        protocol: 'wss',
        description:
          'The WebSocket of this instance; `ws` where it is reached by `http`. A session comes with its cookie, a token with `Authorization: Bearer …`, never in the address.',
        variables: {
          host: {
            default: 'localhost:8080',
            description: 'The host and port by which this instance is reached.'
          }
        },
        security: [
          { $ref: '#/components/securitySchemes/token' },
          { $ref: '#/components/securitySchemes/session' }
        ]
      }
    },
    channels: {
      [connection]: {
        address: null,
        title: 'The connection',
        summary: 'What a client asks for, and how it is refused.',
        description:
          'A second subscribe changes nothing. What may not be heard is answered with the event `error`, be it unknown or forbidden; a later one says that it may be heard no longer.',
        messages: Object.fromEntries(
          [...requests, 'error'].map(name => [name, messageReference(connection, name)])
        )
      },
      ...Object.fromEntries(described.map(({ channel }) => [idOf(channel), describeChannel(channel)]))
    },
    operations: {
      ...Object.fromEntries(
        requests.map(name => [
          name,
          {
            action: 'receive',
            channel: channelReference(connection),
            ...requestWords[name],
            messages: [messageOfChannel(connection, name)]
          }
        ])
      ),
      refuse: {
        action: 'send',
        channel: channelReference(connection),
        summary: 'Refuse a channel.',
        description: 'It may not be heard, or not any more.',
        messages: [messageOfChannel(connection, 'error')]
      },
      ...Object.fromEntries(
        described.map(({ channel }) => [
          `send.${idOf(channel)}`,
          {
            action: 'send',
            channel: channelReference(idOf(channel)),
            summary: `Tell on ${channel.name}.`,
            description: sentence(channel.summary),
            messages: Object.keys(channel.events).map(event => messageOfChannel(idOf(channel), event))
          }
        ])
      )
    },
    components: {
      schemas: components.schemas,
      messages: {
        ...Object.fromEntries(requests.map(name => [`${connection}.${name}`, requestMessage(name)])),
        [`${connection}.error`]: message(
          'error',
          'The channel may not be heard, or not any more.',
          { type: 'string', description: 'The name that was asked for.' },
          {
            type: 'object',
            properties: {
              error: { type: 'string', const: 'access denied', description: 'The only reason that is told.' }
            },
            required: ['error']
          }
        ),
        ...Object.assign({}, ...described.map(({ messages }) => messages))
      },
      securitySchemes: {
        session: {
          type: 'httpApiKey',
          in: 'cookie',
          name: 'token',
          description: 'The dashboard session, from a page of the same origin or of one in `CORS_ORIGINS`.'
        },
        token: {
          type: 'http',
          scheme: 'bearer',
          description: 'A personal access token: `Authorization: Bearer busbar_pat_…`.'
        }
      }
    }
  }
}

/** `build-logs_deploymentId`, `metrics.host`: neither of the two marks is in a word. */
const idOf = ({ name }: DescribedChannel): string => name.replace(/:\{(\w+)\}$/, '_$1').replaceAll(':', '.')

const channelReference = (id: string): Json => ({ $ref: `#/channels/${id}` })
const messageOfChannel = (id: string, event: string): Json => ({ $ref: `#/channels/${id}/messages/${event}` })
const messageReference = (id: string, event: string): Json => ({
  $ref: `#/components/messages/${id}.${event}`
})
const sentence = (text: string): string => (/[.!?)]$/.test(text) ? text : `${text}.`)

function describeChannel(channel: DescribedChannel): Json {
  const { name, param, summary, description, access, events, endsWith, current, plugin } = channel
  const end =
    endsWith === undefined
      ? undefined
      : `After \`${endsWith}\` nothing comes any more: all subscriptions end.`
  const again =
    current === undefined
      ? undefined
      : `Where messages may have been lost within the platform, \`${current.event}\` is sent with what is so by then, also when it has not changed.`
  return {
    address: name,
    title: name,
    summary: sentence(summary),
    description: [description, end, again, accessText(access, '')]
      .filter(text => text !== undefined)
      .join('\n\n'),
    ...(param === null
      ? {}
      : { parameters: { [param]: { description: idText(param, access, false) ?? 'An id.' } } }),
    messages: Object.fromEntries(
      Object.keys(events).map(event => [event, messageReference(idOf(channel), event)])
    ),
    'x-plugin': plugin,
    ...(access.kind === 'token' ? { 'x-scope': access.scope } : {}),
    ...(access.kind !== 'public' && access.role !== undefined ? { 'x-role': access.role } : {})
  }
}

function describeMessages(channel: DescribedChannel, components: SchemaComponents): Json {
  const prefix = channelNamePrefix(channel)
  return Object.fromEntries(
    Object.entries(channel.events).map(([event, schema]) => [
      `${idOf(channel)}.${event}`,
      message(
        event,
        schema.description ?? `The event \`${event}\`.`,
        {
          type: 'string',
          description: `The channel${channel.param === null ? '' : ', with the id'}: \`${channel.name}\`.`
        },
        components.describe(schema, 'answer', prefix)
      )
    ])
  )
}

/** What goes over the wire: the payload is the whole message. */
const message = (event: string, summary: string, channel: Json, data: unknown): Json => ({
  name: event,
  title: event,
  summary,
  payload: {
    type: 'object',
    properties: { channel, event: { type: 'string', const: event, description: 'What happened.' }, data },
    required: ['channel', 'event', 'data']
  }
})

const requestMessage = (action: (typeof requests)[number]): Json => ({
  name: action,
  title: action,
  summary: requestWords[action].description,
  payload: {
    type: 'object',
    properties: {
      action: { type: 'string', const: action, description: 'What is asked for.' },
      channel: { type: 'string', description: 'The address of the channel, with the id in it.' }
    },
    required: ['action', 'channel']
  }
})
