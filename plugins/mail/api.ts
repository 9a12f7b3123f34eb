import { service, type Tx } from 'busbar/sdk'

/**
 * What a message says. It is sent as plain text and as HTML at once; nothing in it is taken for markup,
 * and a line break in the subject is a blank.
 */
export interface EmailContent {
  readonly subject: string
  readonly paragraphs: readonly string[]
  /** A button in HTML, an address on a line of its own in text. `http:` or `https:`. */
  readonly link?: { readonly label: string; readonly url: string }
  /** Small print below the link. */
  readonly note?: string
}

export interface MailMessage extends EmailContent {
  /** One address. */
  readonly to: string
  /** Not sent after this time, however often the server was unreachable; undefined: no limit. */
  readonly expiresAt?: Date
}

export interface Mailer {
  /** False while no mail server is configured: `send` would be refused. */
  isOn(): Promise<boolean>
  /**
   * Adds a message to the outbox, where it exists exactly when `tx` commits. A durable job sends it and
   * tries again for about half an hour; it is encrypted while it waits and deleted once it is sent. 503
   * (`E_MAIL_OFF`) while no mail server is configured, 400 (`E_MAIL_RECIPIENT`) for what is no address.
   */
  send(message: MailMessage, tx?: Tx): Promise<void>
}

/** For built-in plugins only: mail is sent in the platform's name. */
export const mailer = service<Mailer>('mail.mailer', { builtInOnly: true })
