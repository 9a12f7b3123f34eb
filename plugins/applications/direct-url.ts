import { askNow, type Contributions, type ExpectedAnswer, type Log } from 'busbar/sdk'

const longestUrl = 2048

const none = { url: null }

const expectedUrl: Omit<ExpectedAnswer<{ readonly url: string | null }>, 'log'> = {
  what: 'the direct addresses',
  takes: `a text of at most ${longestUrl} characters, or null`,
  take: url =>
    url === null || url === undefined
      ? none
      : typeof url === 'string' && url.length <= longestUrl
        ? { url }
        : undefined
}

type Addresses = Contributions<{ directUrl(applicationId: string): string | null }>

/**
 * The first address that a contribution knows, of each application of a list. What one throws, or answers that is no text, is no
 * address: an application is shown without one rather than not at all.
 */
export function directUrls(addresses: Addresses, log: Log): (applicationId: string) => string | null {
  const expected = { ...expectedUrl, log }
  return applicationId => {
    for (const entry of addresses.entries()) {
      const url = askNow(entry, value => value.directUrl(applicationId), expected)?.url ?? null
      if (url !== null) return url
    }
    return null
  }
}
