import type { AddressInfo } from 'node:net'
import { setTimeout as sleep } from 'node:timers/promises'
import { SMTPServer } from 'smtp-server'
import type { Test } from 'tap'

interface Received {
  readonly from: string
  readonly to: readonly string[]
  /** The message as it came, headers and all. */
  readonly raw: string
  /** The headers alone, unfolded. */
  readonly headers: string
  /** The decoded text part. */
  readonly text: string
  readonly user: string | undefined
}

export interface MailSink {
  readonly port: number
  readonly box: Received[]
  /** How many messages were offered, those that were refused included. */
  offered: number
  /** What the platform is started with to use it. */
  readonly environment: Readonly<Record<string, string>>
  /** The newest message to an address, once there is one. */
  next(to: string, after?: number): Promise<Received>
}

interface SinkOptions {
  readonly port?: number
  readonly login?: { readonly user: string; readonly password: string }
  /** Recipients it says no to, with this status. */
  readonly refuse?: (address: string) => number | undefined
  /** Encrypts from the first byte on, or when a client asks for it, with a certificate that nobody vouches for; by default it does not. */
  readonly encryption?: 'always' | 'offered'
}

/** A real SMTP server that keeps what it is sent. */
export async function mailSink(
  t: Test,
  { port = 0, login, refuse, encryption }: SinkOptions = {}
): Promise<MailSink> {
  const box: Received[] = []
  const server = new SMTPServer({
    authOptional: login === undefined,
    logger: false,
    secure: encryption === 'always',
    disabledCommands: encryption === undefined ? ['STARTTLS'] : [],
    allowInsecureAuth: true,
    onAuth(auth, _session, done) {
      if (auth.username === login?.user && auth.password === login?.password)
        done(null, { user: auth.username })
      else done(new Error('bad login'))
    },
    onRcptTo({ address }, _session, done) {
      sink.offered++
      const status = refuse?.(address)
      done(status === undefined ? null : Object.assign(new Error('no such user'), { responseCode: status }))
    },
    onData(stream, { envelope, user }, done) {
      const chunks: Buffer[] = []
      stream.on('data', (chunk: Buffer) => chunks.push(chunk))
      stream.on('end', () => {
        const raw = Buffer.concat(chunks).toString()
        const [head = ''] = raw.split('\r\n\r\n')
        box.push({
          from: envelope.mailFrom === false ? '' : envelope.mailFrom.address,
          to: envelope.rcptTo.map(({ address }) => address),
          raw,
          headers: head.replaceAll(/\r\n[ \t]+/g, ' '),
          text: textOf(raw),
          user: typeof user === 'string' ? user : undefined
        })
        done()
      })
    }
  })
  server.on('error', () => {})
  await new Promise<void>(resolve => {
    server.listen(port, '127.0.0.1', resolve)
  })
  t.teardown(async () => {
    await new Promise<void>(resolve => {
      server.close(() => {
        resolve()
      })
    })
  })
  const taken = (server.server.address() as AddressInfo).port
  const sink: MailSink = {
    port: taken,
    box,
    offered: 0,
    environment: {
      SMTP_HOST: '127.0.0.1',
      SMTP_PORT: String(taken),
      SMTP_TLS_MODE: 'none',
      SMTP_FROM_EMAIL: 'platform@example.com',
      PUBLIC_BASE_URL: 'https://busbar.example.com'
    },
    async next(to, after = 0) {
      for (let n = 0; n < 600; n++) {
        const found = box.filter(message => message.to.includes(to))[after]
        if (found !== undefined) return found
        await sleep(50)
      }
      throw new Error(`no mail for ${to}; there is ${JSON.stringify(box.map(message => message.to))}`)
    }
  }
  return sink
}

/** The text part: quoted-printable or plain, as nodemailer chooses. */
function textOf(raw: string): string {
  const part = /content-type: text\/plain[\s\S]*?\r\n\r\n([\s\S]*?)\r\n--/i.exec(raw)
  const body = part?.[1] ?? ''
  const isQuoted = /quoted-printable/i.test(part?.[0] ?? '')
  if (!isQuoted) return body
  const bytes = body
    .replaceAll('=\r\n', '')
    .replaceAll(/=([0-9A-F]{2})/g, (_, hex: string) => String.fromCharCode(parseInt(hex, 16)))
  return Buffer.from(bytes, 'latin1').toString()
}

/** The secret in a link of a message. */
export function secretIn({ text }: Received): string {
  const found = /[?&]token=([\w-]+)/.exec(text)?.[1]
  if (found === undefined) throw new Error(`no link in: ${text}`)
  return found
}
