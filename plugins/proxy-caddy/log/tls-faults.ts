/** Names with a fault that are remembered; an authority tells of no more at once. */
const mostNames = 5000
const longestText = 500

interface Fault {
  readonly text: string
  /** What comes next belongs to another attempt, whose first error takes its place. */
  readonly isPast: boolean
}

/** Why the authority has issued no certificate, by hostname, out of Caddy's own log: the first error of the newest attempt. */
export class TlsFaults {
  readonly #faults = new Map<string, Fault>()

  faultOf(hostname: string): string | null {
    return this.#faults.get(hostname)?.text ?? null
  }

  read(line: string): void {
    const entry = entryIn(line)
    if (entry === undefined) return
    const { logger, msg } = entry
    const hostname = textOf(entry.identifier) ?? namesIn(entry.identifiers) ?? nameIn(textOf(entry.error))
    if (hostname === undefined) return
    if (msg === 'certificate obtained successfully') {
      this.#faults.delete(hostname)
      return
    }
    if (msg === 'will retry' || msg === 'obtaining certificate') {
      const known = this.#faults.get(hostname)
      if (known !== undefined) this.#faults.set(hostname, { ...known, isPast: true })
      return
    }
    if (entry.level !== 'error' && entry.level !== 'warn') return
    // Others tell of stapling and of the storage.
    if (logger === undefined || !/^(?:tls\.(?:obtain|renew|issuance)|http\.acme_client)/.test(logger)) return
    const told = problemIn(entry.problem) ?? textOf(entry.error)
    if (told === undefined) return
    const known = this.#faults.get(hostname)
    if (known !== undefined && !known.isPast) return
    this.#faults.delete(hostname)
    this.#faults.set(hostname, { text: withRemedy(told), isPast: false })
    const [oldest] = this.#faults.keys()
    if (this.#faults.size > mostNames && oldest !== undefined) this.#faults.delete(oldest)
  }
}

type Entry = Readonly<Record<string, unknown>> & {
  readonly logger?: string
  readonly msg?: string
  readonly level?: string
}

function entryIn(line: string): Entry | undefined {
  // Nothing else concerns certificates; most lines end here.
  if (!line.startsWith('{') || line.length > 64 * 1024 || !/"logger":"(?:tls|http\.acme)/.test(line))
    return undefined
  try {
    return JSON.parse(line) as Entry
  } catch {
    return undefined
  }
}

const textOf = (value: unknown): string | undefined => (typeof value === 'string' ? value : undefined)
const namesIn = (value: unknown): string | undefined =>
  Array.isArray(value) && value.length === 1 ? textOf(value[0]) : undefined
/** `[www.example.com] Obtain: …` is how the log begins what it tells of a whole attempt. */
const nameIn = (error: string | undefined): string | undefined =>
  error === undefined ? undefined : /^\[([^\]\s]{1,253})\]/.exec(error)?.[1]

/** A problem document of the authority (RFC 8555, 6.7). */
function problemIn(problem: unknown): string | undefined {
  if (typeof problem !== 'object' || problem === null) return undefined
  const { type, title, detail } = problem as { type?: unknown; title?: unknown; detail?: unknown }
  const kind = textOf(type)?.replace(/^urn:ietf:params:acme:error:/, '')
  const words = textOf(detail) || textOf(title)
  return kind === undefined && words === undefined ? undefined : [kind, words].filter(Boolean).join(': ')
}

const remedies: ReadonlyArray<readonly [RegExp, string]> = [
  [
    /rateLimited|HTTP 429|too many/i,
    'the authority gives no more for now: wait, as it says, or use an uploaded certificate'
  ],
  [
    /connection refused|no such host|i\/o timeout|deadline exceeded|network is unreachable|connection reset|no route to host|EOF/i,
    ''
  ],
  [
    /x509|certificate signed by unknown authority/i,
    'set ACME_ROOT_FILE to the certificate of that authority'
  ],
  [/caa/i, 'add a CAA record that allows the authority, or remove those that do not'],
  [
    /rejectedIdentifier|unsupportedIdentifier/i,
    'the authority issues nothing for this name: use an uploaded certificate'
  ],
  [/unauthorized|HTTP 403/i, 'let its DNS lead to this server alone, where nothing else answers on port 80'],
  [/dns|NXDOMAIN|SERVFAIL/i, 'let its DNS lead to this server']
]
const unreachableHost =
  'let its DNS lead to this server, and the network reach ports 80 and 443 of it from outside'
const unreachableAuthority = 'see that this server reaches the authority, or ACME_DIRECTORY_URL'

/** A half-sentence that says what went wrong, with what helps. */
function withRemedy(told: string): string {
  const text = told.replace(/\s+/g, ' ').trim().slice(0, longestText)
  const found = remedies.find(([pattern]) => pattern.test(text))?.[1]
  // The authority speaks of a problem; Caddy alone, of its own connection to the authority.
  const isOwnConnection = /\/(?:dir|directory|new-|acct|order)|performing request|provisioning client/i.test(
    text
  )
  const remedy =
    found === '' || found === undefined ? (isOwnConnection ? unreachableAuthority : unreachableHost) : found
  return `No certificate was issued (${text}): ${remedy}`
}
