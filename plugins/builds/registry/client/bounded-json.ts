/** Far more than any image says of itself. */
const maxMembers = 20_000

const [quote, backslash, comma, colon, brace, bracket] = [...'"\\,:{['].map(sign => sign.charCodeAt(0))

/**
 * Parses what a registry has written, or throws. An object of a million members takes seconds on the thread of everything
 * else, so they are counted first, which takes milliseconds.
 */
export function parseBounded(bytes: Buffer): unknown {
  if (countMembers(bytes) > maxMembers) throw new Error(`it has more than ${maxMembers} members`)
  return JSON.parse(bytes.toString())
}

/** At least as many as there are: every sign between values outside of strings. */
function countMembers(bytes: Buffer): number {
  let count = 0
  let isText = false
  for (let at = 0; at < bytes.length; at++) {
    const byte = bytes[at]
    if (byte === quote) isText = !isText
    else if (isText) {
      if (byte === backslash) at++
    } else if (byte === comma || byte === colon || byte === brace || byte === bracket) count++
  }
  return count
}
