import type { CaddyOptions } from './caddy-options.js'
import type { JsonObject } from './json.js'

export const accessLogName = 'access.log'
export const ownLogName = 'caddy.log'

/** Headers of requests that hold secrets under other names than the four that Caddy leaves out itself. */
const secretHeaders = [
  'X-Api-Key',
  'Api-Key',
  'Apikey',
  'X-Auth-Token',
  'X-Access-Token',
  'X-Csrf-Token',
  'X-Xsrf-Token',
  'X-Gitlab-Token',
  'X-Hub-Signature',
  'X-Hub-Signature-256',
  'X-Amz-Security-Token',
  'X-Vault-Token',
  'X-Forwarded-Access-Token',
  'Referer',
  'Sec-Websocket-Key',
  'Sec-Websocket-Protocol'
]

/** The secret in the path of a deploy hook, and values in a query whose names say that they are secrets. */
const secretInUri =
  '(?i)(/api/webhooks/[a-z]+/|[?&](?:[a-z_-]*token|[a-z_-]*key|[a-z_-]*secret|pass(?:word|wd)?|code|sig(?:nature)?|auth|state)=)[^/?&#\\s]+'

const encoder: JsonObject = {
  format: 'filter',
  wrap: { format: 'json' },
  fields: {
    'request>uri': { filter: 'regexp', regexp: secretInUri, value: '${1}REDACTED' },
    'request>tls': { filter: 'delete' },
    'resp_headers>Location': { filter: 'delete' },
    ...Object.fromEntries(secretHeaders.map(name => [`request>headers>${name}`, { filter: 'delete' }]))
  }
}

/** Rotated files keep their lines as they are, for who has not read them yet. */
const file = (path: string, sizeMb: number): JsonObject => ({
  output: 'file',
  filename: path,
  roll_size_mb: sizeMb,
  roll_keep: 5,
  roll_keep_days: 7,
  roll_gzip: false
})

export function logging({ logDirectory, accessLog }: CaddyOptions): JsonObject {
  if (logDirectory === null)
    return { logs: { default: { level: 'INFO', exclude: ['http.log.access', 'admin.api'] } } }
  return {
    logs: {
      default: {
        writer: file(`${logDirectory}/${ownLogName}`, 10),
        encoder,
        level: 'INFO',
        exclude: ['http.log.access', 'admin.api']
      },
      ...(accessLog && {
        access: {
          writer: file(`${logDirectory}/${accessLogName}`, 100),
          encoder,
          level: 'INFO',
          include: ['http.log.access']
        }
      })
    }
  }
}
