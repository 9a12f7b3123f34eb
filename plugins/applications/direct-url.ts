import type { Contributions } from 'busbar/sdk'

const longestUrl = 2048

/**
 * The first address that a contribution knows. What one throws, or answers that is no text, is no address: an application is shown
 * without one rather than not at all.
 */
export function directUrlOf(
  addresses: Contributions<{ directUrl(applicationId: string): string | null }>,
  applicationId: string
): string | null {
  for (const { value } of addresses.entries()) {
    const url = answerOf(value, applicationId)
    if (typeof url === 'string' && url.length <= longestUrl) return url
  }
  return null
}

function answerOf(value: { directUrl(applicationId: string): unknown }, applicationId: string): unknown {
  try {
    const url = value.directUrl(applicationId)
    // One that is asynchronous by mistake: its error is nobody's.
    if (url instanceof Promise) url.catch(() => {})
    return url
  } catch {
    return null
  }
}
