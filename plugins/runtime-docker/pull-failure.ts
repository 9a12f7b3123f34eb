import type { Problem } from 'busbar/sdk'
import type { ImageReference } from './image-reference.js'
import { problems } from './problems.js'

/** The base image of a build, which the engine pulls without an account. */
interface FailedPull {
  readonly reference: ImageReference
  /** As it was written. */
  readonly image: string
}

interface Values {
  readonly image: string
  readonly registry: string
  readonly name: string
  readonly version: string
  readonly reason: string
}
type Row = readonly [pattern: RegExp, make: (values: Values) => Problem]

// In this order: the words for a denied repository contain "does not exist", those for a failed look-up "dial".
const table: readonly Row[] = [
  [
    /no space left on device|disk quota exceeded/i,
    ({ image, reason }) => problems.diskFull({ task: `pull ${image}`, reason })
  ],
  [/toomanyrequests|429 too many requests/i, values => problems.registryLimit(values)],
  [
    /no such host|server misbehaving|name resolution|lookup [^ ]*( on [^ ]+)?: /i,
    values => problems.registryUnknown(values)
  ],
  [/gave HTTP response to HTTPS client/i, values => problems.registryPlainHttp(values)],
  [/x509|certificate|tls: /i, values => problems.registryTls(values)],
  [
    /error unmarshalling content|error parsing HTTP \d+ response body|invalid character|stopped after \d+ redirects|unsupported manifest media type|malformed HTTP|unsupported protocol scheme/i,
    values => problems.registryAnswer(values)
  ],
  [
    /unauthorized|authentication required|incorrect username or password|\b401\b|pull access denied|no basic auth credentials|authorization failed|insufficient_scope|denied\b|\b403\b/i,
    values => problems.registryDenied(values)
  ],
  [
    /no matching manifest|does not match the (specified|detected) (host )?platform|cannot be used on this platform/i,
    values => problems.imagePlatform(values)
  ],
  [
    /verification failed|missing or empty Content-Length|mediaType in manifest|unknown blob|blob unknown|unexpected end of JSON|invalid (manifest|checksum|digest)|layers from manifest don't match|download failed after attempts=\d+: (unexpected )?EOF/i,
    values => problems.imageBroken(values)
  ],
  [/unsupported schema version|image format|schema1|schema 1/i, values => problems.imageOutdated(values)],
  [/name unknown|repository name not known/i, values => problems.repositoryNotFound(values)],
  [/manifest unknown|not found|does not exist/i, values => problems.imageNotFound(values)],
  [
    /Client\.Timeout|i\/o timeout|deadline exceeded|request canceled|TLS handshake timeout/i,
    values => problems.registrySilent(values)
  ],
  [
    /unexpected HTTP status|unexpected status|internal server error|service unavailable|bad gateway|\b50[0234]\b/i,
    values => problems.registryFailing(values)
  ],
  [
    /dial |connection refused|timeout|unreachable|no route to host|EOF|connection reset|broken pipe/i,
    values => problems.registryUnreachable(values)
  ],
  [/invalid reference format|invalid tag format/i, values => problems.badReference(values)]
]

/** The engine's words about a failed pull as a problem with a remedy. */
export function pullProblem({ reference, image }: FailedPull, words: string): Problem {
  const reason = words.replace(/^Error response from daemon: /, '').trim()
  const { registry, name, version } = reference
  const values = {
    image,
    registry,
    name,
    version: version.startsWith('sha256:') ? `version ${version}` : `tag ${version}`,
    reason
  }
  const telling = withoutNames(reason)
  const row = table.find(([pattern]) => pattern.test(telling))
  return row === undefined ? problems.pullFailed(values) : row[1](values)
}

/** What was asked for says nothing of what went wrong: an image may be called `team/unauthorized:404`. */
const withoutNames = (reason: string): string =>
  reason
    .replace(/"[^"\s]*"/g, quoted => (quoted.includes('/') ? '""' : quoted))
    .replace(/\b(manifest for|access denied for) [^\s,]+/g, '$1')

/** True for words that speak of a registry: what fails inside the FROM of a Dockerfile. */
export const isAboutRegistry = (words: string): boolean =>
  /^(Get|Head) "?https?:|pull access denied|manifest for |manifest unknown|toomanyrequests|repository \S+ not found|no basic auth credentials|^unauthorized\b/i.test(
    words
  )
