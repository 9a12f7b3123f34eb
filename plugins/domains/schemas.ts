import {
  described,
  maybe,
  named,
  nullable,
  object,
  type Static,
  statusResponse,
  Type,
  text,
  timestamp,
  uuid,
  withValues
} from 'busbar/sdk'
import { featureTypes } from './route-features.js'

const statuses = [
  'unknown',
  'disabled',
  'pending',
  'failed',
  'active',
  'expiring',
  'expired',
  'local'
] as const

const anything = () => Type.Unsafe<unknown>({})

export const feature = named(
  'RouteFeature',
  object({
    id: described(uuid(), 'What the feature is called in paths.'),
    domain_id: described(uuid(), 'The domain that it is of.'),
    feature_type: described(Type.String(), 'What it does: one of each type for a domain.'),
    config: described(anything(), 'How it does it, as it was sent; the hash of a password is left out.'),
    enabled: described(Type.Boolean(), 'Whether it is applied.'),
    created_at: described(timestamp(), 'When it was set first; features are applied in this order.'),
    updated_at: described(timestamp(), 'When it was set last.')
  }),
  { description: 'Something that is done with requests of a domain before they are handed on.' }
)
export type FeatureAnswer = Static<typeof feature>

const tlsFields = {
  tls_status: described(
    withValues(Type.String(), statuses),
    "`disabled`: not over TLS. `pending`: no certificate yet. `failed`: none, with the reason in `tls_error`. `active`, `expiring` (less than 14 days left), `expired`: as the certificate that is really served. `local`: by an authority of the proxy's own, which no browser trusts, on purpose. `unknown`: not looked at yet."
  ),
  tls_issuer: described(nullable(Type.String()), 'Who issued the certificate that is served.'),
  tls_not_after: described(nullable(timestamp()), 'Until when that is valid.'),
  tls_last_checked_at: described(nullable(timestamp()), 'When it was looked at last.'),
  tls_error: described(
    nullable(Type.String()),
    'Why the domain is not served as it is to be, with what helps.'
  ),
  tls_advisory: described(
    nullable(Type.String()),
    'What may be wrong: the name leads to another address, for example.'
  )
}

const domainFields = {
  id: described(uuid(), 'What the domain is called in paths.'),
  application_id: described(uuid(), 'The application that it leads to.'),
  hostname: described(Type.String(), 'In lower case; other scripts as `xn--…`.'),
  path: described(Type.String(), 'This path and all below it: `/` is everything that no longer path takes.'),
  strip_path: described(Type.Boolean(), 'Whether `path` is left out of what the application is asked for.'),
  internal_path: described(Type.String(), 'What is put in front of that; empty for nothing.'),
  container_port: described(
    nullable(Type.Integer()),
    'The port of the container; null: that of the application.'
  ),
  ssl_enabled: described(Type.Boolean(), 'Whether it is served over TLS.'),
  ssl_mode: described(Type.String(), '`automatic`, `custom` or `off`.'),
  ssl_provider: described(nullable(Type.String()), 'Kept as it was sent, and used for nothing.'),
  force_https: described(Type.Boolean(), 'Whether plain HTTP is answered with a redirect to HTTPS.'),
  certificate_id: described(nullable(uuid()), 'The uploaded certificate of `custom`.'),
  advanced_config: described(anything(), 'Handlers of the proxy, in order; null for none.'),
  verified_at: described(nullable(timestamp()), 'When the name was first seen to lead to this server.'),
  caddy_config_id: described(nullable(Type.String()), 'Always null: routes have no id of a proxy.'),
  ssl_credentials_encrypted: described(Type.Null(), 'Always null: no credentials are kept for a domain.'),
  ...tlsFields,
  created_at: described(timestamp(), 'When it was added.')
}

export const domain = named('Domain', object(domainFields), {
  description: 'A hostname of an application, with its rules and how it is served.'
})
export type DomainAnswer = Static<typeof domain>

export const domainWithFeatures = named(
  'DomainWithFeatures',
  object({
    ...domainFields,
    route_features: described(Type.Array(feature), 'What is done with its requests, in this order.')
  }),
  { description: 'A domain with its route features.' }
)
export type DomainWithFeatures = Static<typeof domainWithFeatures>

const domainBodyFields = {
  hostname: described(
    Type.String({ minLength: 1, maxLength: 1000 }),
    'A name with a dot: `www.example.com`. `*.example.com` is every host directly below that has no domain of its own. Other scripts are written as `xn--…`.'
  ),
  path: described(
    maybe(nullable(Type.String({ maxLength: 1000 }))),
    'Only this path and all below it; `/` unless given.'
  ),
  strip_path: described(
    maybe(nullable(Type.Boolean())),
    'Leave `path` out of what the application is asked for; false unless given.'
  ),
  internal_path: described(
    maybe(nullable(Type.String({ maxLength: 1000 }))),
    'A path to put in front of what the application is asked for; none unless given.'
  ),
  container_port: described(
    maybe(nullable(Type.Integer())),
    'A port of the container; null or left out: that of the application.'
  ),
  ssl_enabled: described(
    maybe(Type.Boolean()),
    'An older word for `ssl_mode`: true is `automatic`, false is `off`. Together they must agree.'
  ),
  ssl_mode: described(
    maybe(Type.String({ maxLength: 50 })),
    '`automatic`: a certificate is issued and renewed; `custom`: the uploaded one of `certificate_id`; `off`: plain HTTP. Left out: `automatic`, or `off` where the proxy that is on has no automatic certificates.'
  ),
  ssl_provider: described(maybe(nullable(text({ max: 100 }))), 'Kept, and used for nothing.'),
  force_https: described(
    maybe(nullable(Type.Boolean())),
    'Answer plain HTTP with a redirect; as `ssl_enabled` unless given.'
  ),
  certificate_id: described(
    maybe(nullable(Type.String({ maxLength: 100 }))),
    'The certificate of `custom`; ignored otherwise.'
  ),
  advanced_config: described(
    maybe(anything()),
    'A list of handlers of the proxy, applied before forwarding: `headers`, `rewrite`, `redir`, `handle_path`, `subroute`, `authentication`. Checked when it is saved.'
  )
}
export const addBody = named('AddDomain', object(domainBodyFields), {
  description: 'A hostname that is to lead to the application.',
  examples: [{ hostname: 'www.example.com', ssl_mode: 'off' }]
})
export const updateBody = named('UpdateDomain', object(domainBodyFields), {
  description:
    'The whole of a domain; `path`, `strip_path` and `internal_path` stay as they are where they are left out, everything else is as when it is added.',
  examples: [{ hostname: 'www.example.com', path: '/shop', strip_path: true, ssl_mode: 'off' }]
})
export type DomainBody = Static<typeof addBody>

export const featureBody = named(
  'UpsertRouteFeature',
  object({
    feature_type: described(withValues(Type.String({ maxLength: 50 }), featureTypes), 'What it does.'),
    config: described(
      Type.Unsafe<unknown>({ type: 'object' }),
      'By type. basic_auth: `username`, `hashed_password` (bcrypt). headers: `request` and/or `response`, each `{ set, add, delete }`. ip_allowlist: `ranges`. redirect: `from`, `to`, `status_code`. rate_limit: `rate` such as `10/s` (`m`, `h`), so many at once and evenly from then on; `burst`, so many more at once; `key`, what shares a budget: `client_ip`, `header.X-Api-Key`, `all`; `zone`, kept. Unknown keys are refused.'
    ),
    enabled: described(maybe(Type.Boolean()), 'Whether it is applied; true unless given.')
  }),
  {
    description: 'A route feature; it takes the place of the one of this type.',
    examples: [{ feature_type: 'ip_allowlist', config: { ranges: ['10.0.0.0/8'] }, enabled: true }]
  }
)
export type FeatureBody = Static<typeof featureBody>

export const tlsOverview = named(
  'DomainTlsStatus',
  object({
    id: described(uuid(), 'The domain.'),
    hostname: described(Type.String(), 'The name that it is served by.'),
    ssl_mode: described(Type.String(), '`automatic`, `custom` or `off`.'),
    ...tlsFields,
    tls_issuer: described(
      Type.String(),
      'Who issued the certificate that is served; empty where there is none.'
    ),
    tls_error: described(
      Type.String(),
      'Why the domain is not served as it is to be, with what helps; empty where it is.'
    ),
    tls_advisory: described(Type.String(), 'What may be wrong; empty where nothing is known.'),
    certificate_name: described(
      Type.String(),
      'The uploaded certificate that it uses; empty where it uses none.'
    ),
    application_id: described(uuid(), 'The application that it leads to.'),
    application_name: described(Type.String(), 'What that is called.'),
    project_id: described(uuid(), 'The project that it is in.')
  }),
  { description: 'How a domain is served.' }
)

export type TlsOverview = Static<typeof tlsOverview>

export const address = named(
  'ApplicationAddress',
  object({
    url: described(Type.String(), 'Where a browser finds the application.'),
    hostname: described(Type.String(), 'The host in it.'),
    own: described(Type.Boolean(), 'True of the name that the platform gave it; false of a domain.')
  }),
  { description: 'An address of an application by a hostname.' }
)
export type AddressAnswer = Static<typeof address>

const count = (words: string) => described(Type.Integer(), words)

export const reconcilerStatus = named(
  'ProxyReconcilerStatus',
  object({
    interval_seconds: count(
      'How often it is done by itself; 0: the proxy is part of the platform, and is given what changes when it does.'
    ),
    last_run_at: described(
      timestamp(),
      'When it was done last; where it never was, when the plugin was started.'
    ),
    last_duration_ms: count('How long that took.'),
    last_added: count('Routes that were added then.'),
    last_updated: count('Routes that were changed then.'),
    last_removed: count('Routes that were taken away then.'),
    last_error: described(Type.String(), 'Why it failed then; empty where it did not.'),
    run_count: count('How often it was done since the proxy came.'),
    total_drift: count(
      'Differences that were found and repaired since then, beside what was changed on purpose.'
    )
  }),
  { description: 'What the comparison of what the proxy serves with what it should has done.' }
)
export type ReconcilerAnswer = Static<typeof reconcilerStatus>

export const serverIp = named(
  'ServerIp',
  object({
    effective: described(Type.String(), 'The address; empty where it is not known.'),
    source: described(Type.String(), 'How it is known: `env` (BUSBAR_PUBLIC_IP), `detected`, or `unknown`.')
  }),
  { description: 'The address of this server that domains have to lead to.' }
)

export const dashboardTls = named(
  'DashboardTls',
  object({
    domain: described(Type.String(), 'The hostname of the platform itself; empty where it has none.'),
    ssl_mode: described(Type.String(), '`automatic`, `custom` or `off`.'),
    tls_status: tlsFields.tls_status,
    tls_issuer: described(
      Type.String(),
      'Who issued the certificate that is served; empty where there is none.'
    ),
    tls_not_after: tlsFields.tls_not_after,
    tls_error: described(
      Type.String(),
      'Why it is not served as it is to be, with what helps; empty where it is.'
    )
  }),
  { description: 'How the platform itself is served by its hostname.' }
)
export type DashboardTls = Static<typeof dashboardTls>

export const featureParams = {
  featureId: described(uuid(), 'The `id` of the feature, as the list of them has it.')
}
export const deletedAnswer = statusResponse
