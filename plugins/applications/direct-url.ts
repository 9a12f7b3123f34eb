import { askNow, type Contributions, type ExpectedAnswer, type Log } from 'busbar/sdk'

const longestUrl = 2048

const expectedUrl: Omit<ExpectedAnswer<{ readonly url: string | null }>, 'log'> = {
  what: 'the direct addresses',
  takes: `a text of at most ${longestUrl} characters, or null`,
  take: url =>
    url === null || url === undefined
      ? { url: null }
      : typeof url === 'string' && url.length <= longestUrl
        ? { url }
        : undefined
}

/**
 * The first address that a contribution knows. What one throws, or answers that is no text, is no address: an application is shown
 * without one rather than not at all.
 */
export function directUrlOf(
  addresses: Contributions<{ directUrl(applicationId: string): string | null }>,
  applicationId: string,
  log: Log
): string | null {
  const expected = { ...expectedUrl, log }
  for (const entry of addresses.entries()) {
    const url = askNow(entry, value => value.directUrl(applicationId), expected)?.url ?? null
    if (url !== null) return url
  }
  return null
}
