import { fromEnvironment, MisconfiguredError, maybe, object, oneOf, type Static, Type } from 'busbar/sdk'

const tlsModes = ['none', 'starttls', 'tls'] as const
export type TlsMode = (typeof tlsModes)[number]
const mailAddress = /^[^\s@]+@[^\s@]+$/

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

export const settings = object({
  smtp_host: maybe(
    fromEnvironment('SMTP_HOST', Type.String({ description: 'The mail server; mail is off without one' }))
  ),
  smtp_port: fromEnvironment(
    'SMTP_PORT',
    Type.Integer({ minimum: 1, maximum: 65_535, default: 587, description: 'The port of the mail server' })
  ),
  smtp_tls_mode: fromEnvironment(
    'SMTP_TLS_MODE',
    Type.Unsafe<TlsMode>({
      ...oneOf(tlsModes),
      default: 'starttls',
      description: 'How the connection to the mail server is encrypted'
    })
  ),
  smtp_user: maybe(
    fromEnvironment(
      'SMTP_USER',
      Type.String({ description: 'The user of the mail server; without one there is no login' })
    )
  ),
  smtp_password: maybe(
    fromEnvironment('SMTP_PASSWORD', Type.String({ description: 'The password of that user' }), {
      secret: true
    })
  ),
  smtp_from_email: maybe(
    fromEnvironment(
      'SMTP_FROM_EMAIL',
      Type.String({ pattern: mailAddress.source, description: 'The sender; SMTP_USER unless set' }),
      { takes: 'a mail address, like busbar@example.com' }
    )
  ),
  smtp_from_name: fromEnvironment(
    'SMTP_FROM_NAME',
    Type.String({ default: 'Busbar', description: 'The name of the sender' })
  )
})
export type Settings = Static<typeof settings>

/** Undefined without a host. Throws without a sender's address. */
export function mailSettingsOf(config: Settings): MailSettings | undefined {
  const { smtp_host: host, smtp_user: user } = config
  if (host === undefined) return undefined
  const address = config.smtp_from_email ?? user
  if (address === undefined || !mailAddress.test(address)) {
    throw new MisconfiguredError(
      'SMTP_HOST is set, but SMTP_FROM_EMAIL is not: give the address that mail comes from'
    )
  }
  return Object.freeze({
    host,
    port: config.smtp_port,
    tlsMode: config.smtp_tls_mode,
    login: user === undefined ? undefined : { user, password: config.smtp_password ?? '' },
    from: { name: config.smtp_from_name, address }
  })
}
