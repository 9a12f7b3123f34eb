import type { ConfigWarning } from 'busbar/sdk'
import type { MailSettings } from './settings.js'

/** What is wrong with how mail leaves the platform. */
export function mailWarnings(settings: MailSettings | undefined): ConfigWarning[] {
  if (settings === undefined)
    return [
      {
        code: 'mail_off',
        message:
          'no mail server is set, so invitations and links to reset a password are not sent, and nobody is told of anything by mail',
        remedy: 'set SMTP_HOST, SMTP_USER, SMTP_PASSWORD and SMTP_FROM_EMAIL, and start the platform again'
      }
    ]
  const isNear = /^(?:localhost|127\.\d+\.\d+\.\d+|::1)$/.test(settings.host)
  return settings.tlsMode === 'none' && !isNear
    ? [
        {
          code: 'mail_unencrypted',
          message: `mail goes to ${settings.host} without encryption, so everybody on the way can read it, with the links that reset passwords${settings.login === undefined ? '' : ' and the password of the mail server'}`,
          remedy: 'set SMTP_TLS_MODE to starttls or tls, and start the platform again'
        }
      ]
    : []
}
