import type { Instance } from 'busbar/sdk'

const tlsModes = ['none', 'starttls', 'tls'] as const
export type TlsMode = (typeof tlsModes)[number]

/** How mail leaves the platform. */
export interface MailSettings {
  readonly host: string
  readonly port: number
  /** `starttls` sends nothing over a connection that could not be encrypted. */
  readonly tlsMode: TlsMode
  /** Undefined: the server asks for no login. */
  readonly login: { readonly user: string; readonly password: string } | undefined
  readonly from: { readonly name: string; readonly address: string }
}

const productName = 'Busbar'

/** `SMTP_*`; undefined without a host. What cannot be used is an error that names the variable. */
export function readMailSettings(environment: Instance['environment']): MailSettings | undefined {
  const host = environment('SMTP_HOST')
  if (host === undefined) return undefined
  const user = environment('SMTP_USER')
  const address = environment('SMTP_FROM_EMAIL') ?? user
  if (address === undefined || !/^[^\s@]+@[^\s@]+$/.test(address)) {
    throw new Error('SMTP_HOST is set, but SMTP_FROM_EMAIL is not: give the address that mail comes from')
  }
  return Object.freeze({
    host,
    port: readPort(environment('SMTP_PORT')),
    tlsMode: readTlsMode(environment('SMTP_TLS_MODE')),
    login: user === undefined ? undefined : { user, password: environment('SMTP_PASSWORD') ?? '' },
    from: { name: environment('SMTP_FROM_NAME') ?? productName, address }
  })
}

function readPort(text = '587'): number {
  const port = /^\d{1,5}$/.test(text) ? Number(text) : 0
  if (port < 1 || port > 65_535)
    throw new Error(`SMTP_PORT is "${text}"; it takes a whole number from 1 to 65535`)
  return port
}

function readTlsMode(text = 'starttls'): TlsMode {
  const mode = tlsModes.find(one => one === text)
  if (mode === undefined) throw new Error(`SMTP_TLS_MODE is "${text}"; it takes ${tlsModes.join(', ')}`)
  return mode
}
