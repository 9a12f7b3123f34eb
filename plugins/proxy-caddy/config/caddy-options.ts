import type { Json } from './json.js'

/** What a configuration is made of besides the routing table: settings, and what of this process Caddy has to reach. */
export interface CaddyOptions {
  /** The id of this installation, by which it knows its own configuration. */
  readonly mark: string
  /** The block `admin`, as it has to stay. */
  readonly admin: Json
  /** The address to listen on; empty: all. */
  readonly bind: string
  readonly httpPort: number
  readonly httpsPort: number
  /** The name server of this process. */
  readonly resolver: { readonly host: string; readonly port: number }
  /** Where this process says who may pass. */
  readonly responder: { readonly host: string; readonly port: number }
  /** How long requests may go on under a former configuration, in seconds. */
  readonly graceSeconds: number
  /** Whether WebSockets stay open when the configuration changes, which Caddy 2.6 cannot be told. */
  readonly keepsStreams: boolean
  /** Where Caddy keeps keys and certificates; null: where it does by itself. */
  readonly storage: string | null
  /** A folder that Caddy can write to; null: no log is written to a file. */
  readonly logDirectory: string | null
  readonly accessLog: boolean
  readonly issuer: IssuerOptions
  /** What the platform knows its own proxy by. */
  readonly ownProxy: { readonly header: string; readonly value: string }
}

export type IssuerOptions =
  | { readonly kind: 'internal' }
  | {
      readonly kind: 'acme'
      /** Undefined: the one of Caddy, Let's Encrypt. */
      readonly directory: string | undefined
      readonly email: string | undefined
      /** A file with the certificate by which the directory is trusted. */
      readonly rootFile: string | undefined
    }
