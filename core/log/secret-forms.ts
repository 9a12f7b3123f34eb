/** Shorter values would black out ordinary words; these few are never secret whatever their length. */
const shortestSecret = 4
const plainWords = new Set(['true', 'false', 'null', 'undefined'])

/** The shortest part of an encoding, or line of a longer value, that is looked for by itself. */
const shortestPart = 12

/**
 * So many characters of values that are hidden together are looked for in every spelling, those of short values first.
 * What is beyond is found as it stands, and in its long lines, as logs are read line by line: a value has a dozen
 * spellings and any number of short lines, and megabytes of secrets of one tenant must not slow down everything else.
 */
const mostSpelledOut = 128 * 1024

/** Every text in which one of the values may turn up. */
export function formsOfAll(values: readonly string[]): readonly string[] {
  let left = mostSpelledOut
  return values
    .filter(isSecret)
    .sort((a, b) => a.length - b.length)
    .flatMap(value => {
      left -= value.length
      return left >= 0 ? secretForms(value) : [value, value.trim(), ...longLines(value)].filter(isSecret)
    })
}

/** Of these the search costs next to nothing, however many there are. */
const longLine = 64

const longLines = (value: string): readonly string[] =>
  value.split(/\r?\n/).filter(line => line.length >= longLine)

const isSecret = (value: string): boolean =>
  value.length >= shortestSecret && !plainWords.has(value.toLowerCase())

/** Every spelling in which a secret may turn up in a text. */
function secretForms(secret: string): readonly string[] {
  const forms = new Set([
    secret,
    JSON.stringify(secret).slice(1, -1),
    ...urlForms(secret),
    ...base64Forms(secret)
  ])
  // Logs show a key file line by line.
  for (const line of secret.split(/\r?\n/)) {
    if (line.length >= shortestPart && !line.startsWith('-----')) forms.add(line)
  }
  return [...forms].filter(form => form.length >= shortestSecret)
}

/**
 * Encoders agree on letters and digits only: RFC 3986 (Go, Python, curl) encodes what JavaScript leaves, and forms
 * (browsers, Java) go by a list of their own. A blank is `+` or `%20`, and the hex is in either case.
 */
function urlForms(secret: string): string[] {
  // By way of bytes: a lone surrogate cannot be encoded.
  const encoded = encodeURIComponent(Buffer.from(secret).toString())
  const strict = encoded.replace(/[!'()*]/g, percentEncoded)
  const form = strict.replaceAll('%2A', '*').replaceAll('~', '%7E')
  const queries = [encoded, strict, form].flatMap(text => [text, text.replaceAll('%20', '+')])
  return queries.flatMap(text => [text, lowerHex(text)])
}

const percentEncoded = (sign: string) => `%${sign.charCodeAt(0).toString(16).toUpperCase()}`

const lowerHex = (text: string) => text.replace(/%[0-9A-F]{2}/g, hex => hex.toLowerCase())

/**
 * The whole encoding, and the part that stays the same when the secret lies somewhere inside a longer
 * text that was encoded (`user:secret` of HTTP Basic, the JSON of a registry's credentials).
 */
function base64Forms(secret: string): string[] {
  const bytes = Buffer.from(secret)
  const inside = [0, 1, 2].map(before => {
    const encoded = Buffer.concat([Buffer.alloc(before), bytes]).toString('base64url')
    const spoiledEnd = (before + bytes.length) % 3 === 0 ? 0 : 1
    return encoded.slice(before === 0 ? 0 : before + 1, encoded.length - spoiledEnd)
  })
  const urlSafe = [bytes.toString('base64url'), ...inside.filter(part => part.length >= shortestPart)]
  const standard = urlSafe.map(text => text.replaceAll('-', '+').replaceAll('_', '/'))
  return [bytes.toString('base64'), ...urlSafe, ...standard]
}
