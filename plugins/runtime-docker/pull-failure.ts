import type { Problem } from 'busbar/sdk'
import type { ImageReference } from './image-reference.js'
import { problems } from './problems.js'

type Row = readonly [pattern: RegExp, make: (values: { image: string, registry: string, reason: string }) => Problem]

// In this order: the words for a denied repository contain "does not exist", those for a failed look-up "dial".
const table: readonly Row[] = [
  [/no space left on device/i, ({ image, reason }) => problems.diskFull({ task: `pull ${image}`, reason })],
  [/toomanyrequests|429 too many requests/i, problems.registryLimit],
  [/no such host|server misbehaving|name resolution|lookup [^ ]+( on [^ ]+)?: /i, problems.registryUnknown],
  [/x509|certificate|gave HTTP response to HTTPS client|tls: /i, problems.registryTls],
  [/pull access denied|unauthorized|no basic auth credentials|authentication required|denied: |\b40[13]\b/i, problems.registryDenied],
  [/no matching manifest|does not match the (specified|detected) (host )?platform/i, problems.imagePlatform],
  [/manifest unknown|not found|does not exist|name unknown/i, problems.imageNotFound],
  [/dial |connection refused|timeout|deadline exceeded|unreachable|no route to host|EOF|connection reset|Client\.Timeout|request canceled|\b50[0234]\b/i, problems.registryUnreachable],
  [/invalid reference format|invalid tag format/i, problems.badReference]
]

/** The engine's words about a failed pull as a problem with a remedy. */
export function pullProblem (reference: ImageReference, image: string, words: string): Problem {
  const reason = words.replace(/^Error response from daemon: /, '').trim()
  const row = table.find(([pattern]) => pattern.test(reason))
  return (row?.[1] ?? problems.pullFailed)({ image, registry: reference.registry, reason })
}

/** True for words that speak of a registry: what fails inside the FROM of a Dockerfile. */
export const isAboutRegistry = (words: string): boolean =>
  /^(Get|Head) "?https?:|pull access denied|manifest for |manifest unknown|toomanyrequests|repository .+ not found/i.test(words)
