import { isIP } from 'node:net'
import { isAbsolute } from 'node:path'
import { fromEnvironment, maybe, object, type Static, Type } from 'busbar/sdk'

const port = (preset: number, description: string) =>
  Type.Integer({ minimum: 1, maximum: 65_535, default: preset, description })

export const settings = object({
  program: fromEnvironment(
    'BUSBAR_CADDY_PROGRAM',
    Type.String({
      minLength: 1,
      default: 'caddy',
      description:
        'The program to run as the proxy: a name to find in PATH or a path; none: no program is run'
    })
  ),
  image: maybe(
    fromEnvironment(
      'BUSBAR_CADDY_IMAGE',
      Type.String({
        description:
          'An image with Caddy, which runs in a container where the program is not there; it has to be on the Docker Engine of this machine'
      }),
      {
        takes: 'the name of an image, like caddy:2',
        parse: text => (/^[\w][\w./:@-]{0,250}$/.test(text) ? text : undefined)
      }
    )
  ),
  search_path: maybe(
    fromEnvironment('PATH', Type.String({ description: 'Where the program is looked for' }))
  ),
  admin_url: maybe(
    fromEnvironment(
      'CADDY_ADMIN_URL',
      Type.String({
        description:
          'The admin API of a Caddy that runs already, http://127.0.0.1:2019 or unix:///run/caddy/admin.sock; it is used in place of one that the platform runs'
      }),
      { takes: 'http://<host>:<port> or unix://<absolute path>', parse: parseAdmin }
    )
  ),
  bind: maybe(
    fromEnvironment(
      'BUSBAR_CADDY_BIND',
      Type.String({ description: 'The address that Caddy listens on; all of them unless set' }),
      { takes: 'an address, like 203.0.113.7', parse: text => (isIP(text) === 0 ? undefined : text) }
    )
  ),
  http_port: fromEnvironment('BUSBAR_HTTP_PORT', port(80, 'The port on which Caddy serves plain HTTP')),
  https_port: fromEnvironment('BUSBAR_HTTPS_PORT', port(443, 'The port on which Caddy serves TLS')),
  dns_host: fromEnvironment(
    'BUSBAR_CADDY_DNS_HOST',
    Type.String({
      default: '127.0.0.1',
      description:
        'The address of this machine at which Caddy asks where applications are; another one where Caddy runs in a container'
    }),
    { takes: 'an address, like 127.0.0.1', parse: text => (isIP(text) === 0 ? undefined : text) }
  ),
  grace_seconds: fromEnvironment(
    'BUSBAR_CADDY_GRACE_SECONDS',
    Type.Integer({
      minimum: 1,
      maximum: 14,
      default: 5,
      description:
        'How long requests under way may go on when the configuration changes; deploys do not change it'
    })
  ),
  log_directory: maybe(
    fromEnvironment(
      'BUSBAR_CADDY_LOG_DIRECTORY',
      Type.String({
        description:
          'For a Caddy of CADDY_ADMIN_URL: a folder that it may write to and the platform may read, for its log and request traces'
      }),
      { takes: 'an absolute path', parse: text => (isAbsolute(text) ? text : undefined) }
    )
  ),
  access_log: fromEnvironment(
    'BUSBAR_CADDY_ACCESS_LOG',
    Type.Boolean({ default: true, description: 'Whether Caddy notes each request, for request traces' })
  ),
  issuer: fromEnvironment(
    'BUSBAR_TLS_ISSUER',
    Type.Union([Type.Literal('acme'), Type.Literal('internal')], {
      default: 'acme',
      description:
        'acme: an authority of ACME; internal: one of Caddy itself, which no browser trusts, for local development'
    })
  ),
  acme_directory: maybe(
    fromEnvironment(
      'ACME_DIRECTORY_URL',
      Type.String({ description: "The directory of the ACME authority; Let's Encrypt unless set" }),
      { takes: 'an https address', parse: text => (/^https:\/\/\S{1,2000}$/.test(text) ? text : undefined) }
    )
  ),
  acme_email: maybe(
    fromEnvironment(
      'ACME_EMAIL',
      Type.String({ description: 'Whom the ACME authority may write to about certificates' }),
      {
        takes: 'an e-mail address',
        parse: text => (/^[^\s{}@]{1,64}@[^\s{}@]{1,255}$/.test(text) ? text : undefined)
      }
    )
  ),
  acme_root_file: maybe(
    fromEnvironment(
      'ACME_ROOT_FILE',
      Type.String({
        description: 'A file with the certificate by which an ACME directory of your own is trusted'
      }),
      { takes: 'an absolute path', parse: text => (isAbsolute(text) ? text : undefined) }
    )
  )
})
export type Settings = Static<typeof settings>

/** How the admin API is reached. */
export type AdminAddress =
  | { readonly kind: 'tcp'; readonly host: string; readonly port: number }
  | { readonly kind: 'unix'; readonly path: string }

function parseAdmin(text: string): AdminAddress | undefined {
  // Caddy itself writes unix//run/caddy/admin.sock.
  const path = /^unix(?::\/\/|\/)(\/\S{1,100})$/.exec(text)?.[1]
  if (path !== undefined) return { kind: 'unix', path }
  if (!URL.canParse(text)) return undefined
  const { protocol, hostname, port: at, pathname, search, username } = new URL(text)
  if (protocol !== 'http:' || pathname !== '/' || search !== '' || username !== '') return undefined
  return { kind: 'tcp', host: hostname.replace(/^\[|\]$/g, ''), port: at === '' ? 80 : Number(at) }
}
