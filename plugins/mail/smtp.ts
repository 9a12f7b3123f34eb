import type { RenderedEmail } from './render-email.js'
import type { MailSettings, TlsMode } from './settings.js'

export interface Envelope extends RenderedEmail {
  /** Stays the same when it is sent again, so that a mailbox shows it once. */
  readonly id: string
  readonly to: string
}

/** Why a message was not taken. `isFinal`: this recipient will never be. */
export class MailRefused extends Error {
  constructor(
    message: string,
    readonly isFinal: boolean
  ) {
    super(message)
    this.name = 'MailRefused'
  }
}

/** Sends one message; resolves when the server has taken it. */
export type Smtp = (settings: MailSettings, envelope: Envelope) => Promise<void>

const connectMs = 10_000
const silenceMs = 30_000

const security: Readonly<Record<TlsMode, { secure: boolean; ignoreTLS?: boolean; requireTLS?: boolean }>> = {
  none: { secure: false, ignoreTLS: true },
  starttls: { secure: false, requireTLS: true },
  tls: { secure: true }
}

/** Over a connection of its own: mail is rare, and a connection that is kept may be dead when it is needed. */
export const sendBySmtp: Smtp = async (
  { host, port, tlsMode, login, from },
  { id, to, subject, text, html }
) => {
  // On first use: it is a megabyte of source, and many installations send no mail.
  const { createTransport } = await import('nodemailer')
  const transport = createTransport({
    host,
    port,
    ...security[tlsMode],
    ...(login === undefined ? {} : { auth: { user: login.user, pass: login.password } }),
    connectionTimeout: connectMs,
    greetingTimeout: connectMs,
    socketTimeout: silenceMs,
    // Content is data: nothing in it makes the platform open a file or an address.
    disableFileAccess: true,
    disableUrlAccess: true
  })
  try {
    await transport.sendMail({
      messageId: `<${id}@${from.address.split('@')[1] ?? 'localhost'}>`,
      // As objects: an address is never parsed as a list of several.
      from,
      to: { name: '', address: to },
      envelope: { from: from.address, to: [to] },
      subject,
      text,
      html,
      headers: { 'Auto-Submitted': 'auto-generated' }
    })
  } catch (error) {
    throw explain(error, `${host}:${port}`)
  } finally {
    transport.close()
  }
}

/** Without the error it came from: that one may quote what was sent. */
function explain(error: unknown, server: string): MailRefused {
  const {
    code = '',
    responseCode = 0,
    message = String(error)
  } = error as { code?: string; responseCode?: number; message?: string }
  const isFinal = code === 'EENVELOPE' && responseCode >= 500 && responseCode < 600
  return new MailRefused(
    `the mail server ${server} did not take a message: ${message.split('\n')[0] ?? ''}`,
    isFinal
  )
}
