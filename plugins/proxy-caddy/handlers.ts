/**
 * Handlers of Caddy that an application's owner may write. Everything else is refused: Caddy also reads files, runs programs,
 * connects to hosts and gives away its environment. So each field is named here; what is unknown is no field.
 */

/** A rule that a handler breaks, as the end of a sentence. */
class HandlerFault extends Error {}

type Fields = Readonly<Record<string, unknown>>
type Reader = (value: unknown, place: string) => void

const longestText = 4000
const mostItems = 200
/** Named by the proxy for each message, or by the platform for itself. */
const ownHeaders = new Set([
  'connection',
  'content-length',
  'cookie',
  'host',
  'keep-alive',
  'set-cookie',
  'te',
  'trailer',
  'transfer-encoding',
  'upgrade',
  'x-request-id'
])

/** What is wrong with handlers, as a half-sentence; null where nothing is. Whether Caddy takes them, it says itself. */
export function handlersFault(handlers: readonly unknown[]): string | null {
  try {
    for (const [index, handler] of handlers.entries()) readHandler(handler, `handler ${index + 1}`)
    return null
  } catch (error) {
    if (error instanceof HandlerFault) return error.message
    throw error
  }
}

const readHandler: Reader = (value, place) => {
  const { handler: kind, ...fields } = fieldsOf(value, place)
  if (kind === 'redir' || kind === 'handle_path')
    throw new HandlerFault(
      `${place}: ${kind} is a word of a Caddyfile, no handler; use the route feature redirect, or a subroute with rewrite`
    )
  const reader = typeof kind === 'string' && Object.hasOwn(readers, kind) ? readers[kind] : undefined
  if (reader === undefined)
    throw new HandlerFault(
      `${place} is of a kind that is not allowed; allowed are ${Object.keys(readers).join(', ')}`
    )
  reader(fields, place)
}

const text: Reader = (value, place) => {
  if (typeof value !== 'string' || value.length > longestText)
    throw new HandlerFault(`${place} is a text of at most ${longestText} characters`)
  checkPlaceholders(value, place)
}

/** `{http.request.uri.path}` is what a request says; `{env.…}` and others are what the machine is. */
function checkPlaceholders(value: string, place: string): void {
  if (value.includes('\0') || /[\r\n]/.test(value)) throw new HandlerFault(`${place} has a line break in it`)
  for (let at = value.indexOf('{'); at >= 0; at = value.indexOf('{', at + 1)) {
    if (value[at - 1] === '\\' && value[at - 2] !== '\\') continue
    if (!value.startsWith('{http.request.', at) && !value.startsWith('{http.response.', at))
      throw new HandlerFault(
        `${place} has a placeholder that does not begin with {http.request. or {http.response.`
      )
  }
}

/** RE2 takes time in proportion to its input, and braces in it are no placeholders. */
const pattern: Reader = (value, place) => {
  if (typeof value !== 'string' || value.length > 1000 || /[\r\n\0]/.test(value))
    throw new HandlerFault(`${place} is a regular expression of at most 1000 characters`)
  if (/\{\s*(?:env|file|system|http|time)\b/.test(value)) throw new HandlerFault(`${place} has a placeholder`)
}

const flag: Reader = (value, place) => {
  if (typeof value !== 'boolean') throw new HandlerFault(`${place} is true or false`)
}
const count: Reader = (value, place) => {
  if (!Number.isInteger(value) || (value as number) < 0 || (value as number) > 10_000)
    throw new HandlerFault(`${place} is a whole number`)
}
const oneOf =
  (...words: readonly string[]): Reader =>
  (value, place) => {
    if (typeof value !== 'string' || !words.includes(value))
      throw new HandlerFault(`${place} is ${words.join(' or ')}`)
  }
const list =
  (reader: Reader): Reader =>
  (value, place) => {
    if (!Array.isArray(value) || value.length > mostItems)
      throw new HandlerFault(`${place} is a list of at most ${mostItems}`)
    for (const [index, item] of value.entries()) reader(item, `${place}[${index}]`)
  }
const record =
  (key: Reader, reader: Reader): Reader =>
  (value, place) => {
    const fields = Object.entries(fieldsOf(value, place))
    if (fields.length > mostItems) throw new HandlerFault(`${place} has more than ${mostItems} names`)
    for (const [name, inner] of fields) {
      key(name, `a name in ${place}`)
      reader(inner, `${place}.${name.slice(0, 60)}`)
    }
  }
const shape =
  (fields: Readonly<Record<string, Reader>>): Reader =>
  (value, place) => {
    for (const [name, inner] of Object.entries(fieldsOf(value, place))) {
      const reader = Object.hasOwn(fields, name) ? fields[name] : undefined
      if (reader === undefined)
        throw new HandlerFault(
          `${place} has ${JSON.stringify(name).slice(0, 60)}, which is not allowed; allowed are ${Object.keys(fields).join(', ')}`
        )
      reader(inner, `${place}.${name}`)
    }
  }

function fieldsOf(value: unknown, place: string): Fields {
  if (typeof value !== 'object' || value === null || Array.isArray(value))
    throw new HandlerFault(`${place} is no object`)
  return value as Fields
}

const headerName: Reader = (value, place) => {
  if (typeof value !== 'string' || !/^[A-Za-z0-9!#$%&'+.^_`|~-]{1,100}$/.test(value))
    throw new HandlerFault(`${place} is no name of a header`)
  if (ownHeaders.has(value.toLowerCase().replaceAll('_', '-')))
    throw new HandlerFault(`${place}: ${value} is the proxy's own`)
}
const headerPattern: Reader = (value, place) =>
  headerName(typeof value === 'string' ? value.replaceAll('*', 'x') : value, place)

const replacement = shape({ search: text, search_regexp: pattern, replace: text })
const headerOps = {
  add: record(headerName, list(text)),
  set: record(headerName, list(text)),
  delete: list(headerName),
  replace: record(headerName, list(replacement))
}

/**
 * Where nothing stands behind a question mark, Caddy takes for the query what comes behind one in the *value* of a placeholder, and
 * looks that through for placeholders: whoever asks for `/%3F{env.…}` would be told what the machine is.
 */
const uri: Reader = (value, place) => {
  text(value, place)
  const [, path = '', query = ''] = /^([^?#]*)(?:\?([^#]*))?/.exec(value as string) ?? []
  if (path.replaceAll('{http.request.uri.path}', '').includes('{'))
    throw new HandlerFault(
      `${place} has another placeholder in its path than {http.request.uri.path}; others may stand behind a question mark`
    )
  if (path.includes('{') && query === '')
    throw new HandlerFault(
      `${place} has {http.request.uri.path} and no query; write ?{http.request.uri.query} behind it`
    )
}

const bcrypt: Reader = (value, place) => {
  const cost =
    typeof value === 'string' ? /^\$2[aby]\$(\d{2})\$[./A-Za-z0-9]{53}$/.exec(value)?.[1] : undefined
  if (cost === undefined || Number(cost) < 4 || Number(cost) > 14)
    throw new HandlerFault(`${place} is a bcrypt hash with a cost of 4 to 14`)
}
const plain: Reader = (value, place) => {
  if (typeof value !== 'string' || value.length === 0 || value.length > 255 || /[{}\r\n\0]/.test(value))
    throw new HandlerFault(`${place} is a text of 1 to 255 characters without braces`)
}

/** Of one round of matching; what is `not` may hold again all of them. */
const matcher: Reader = (value, place) => matchers(value, place)
const matchers = shape({
  path: list(text),
  path_regexp: shape({ name: plain, pattern }),
  header: record(headerPattern, list(text)),
  header_regexp: record(headerName, shape({ name: plain, pattern })),
  method: list(plain),
  query: record(plain, list(text)),
  protocol: oneOf('http', 'https'),
  not: list(matcher)
})

const routes: Reader = (value, place) => innerRoutes(value, place)
const readers: Readonly<Record<string, Reader>> = {
  headers: shape({
    request: shape(headerOps),
    response: shape({
      ...headerOps,
      deferred: flag,
      require: shape({ status_code: list(count), headers: record(headerPattern, list(text)) })
    })
  }),
  rewrite: shape({
    method: plain,
    uri,
    strip_path_prefix: text,
    strip_path_suffix: text,
    uri_substring: list(shape({ find: text, replace: text, limit: count })),
    path_regexp: list(shape({ find: pattern, replace: text }))
  }),
  subroute: shape({ routes }),
  authentication: shape({
    providers: shape({
      http_basic: shape({
        accounts: list(shape({ username: plain, password: bcrypt })),
        hash: shape({ algorithm: oneOf('bcrypt') }),
        realm: plain,
        hash_cache: shape({})
      })
    })
  })
}
const innerRoutes = list(
  shape({ group: plain, match: list(matcher), handle: list(readHandler), terminal: flag })
)
