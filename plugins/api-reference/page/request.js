import { encoded, pathOf } from './samples.js'

/**
 * The request that a form makes: `{ url, init }` for `fetch`, or `{ fault, field }` where something is missing. `caller` is
 * `{ kind: 'session', csrf }`, `{ kind: 'token', token }` or `{ kind: 'nobody' }`.
 */
export function requestOf(operation, given, caller) {
  const { method, path, parameters, body } = operation
  const missing = parameters.find(
    ({ in: place, name, 'x-required': isRequired }) =>
      (place === 'path' && blank(given.path[name])) ||
      (place === 'query' && isRequired === true && blank(given.query[name]))
  )
  if (missing !== undefined) return { fault: `${missing.name} is needed`, field: missing.name }
  // An address takes them for its own.
  const dots = parameters.find(({ in: place, name }) => place === 'path' && /^\.\.?$/.test(given.path[name]))
  if (dots !== undefined) return { fault: `${dots.name} cannot be dots alone`, field: dots.name }
  if (caller.kind === 'token' && blank(caller.token)) return { fault: 'paste a token first', field: 'token' }
  // A token that was copied from where it is shown cut, for one.
  if (caller.kind === 'token' && !isHeaderText(caller.token.trim()))
    return { fault: 'the token holds characters that no token has: copy it whole', field: 'token' }
  const odd = parameters.find(
    ({ in: place, name }) => place === 'header' && !isHeaderText(given.header[name] ?? '')
  )
  if (odd !== undefined)
    return { fault: `${odd.name} can hold printable ASCII characters alone`, field: odd.name }
  const fault = body?.type === 'application/json' ? jsonFault(given.body) : undefined
  if (fault !== undefined) return { fault: `the body is no JSON: ${fault}`, field: 'body' }

  const query = parameters
    .filter(({ in: place, name }) => place === 'query' && !blank(given.query[name]))
    .map(({ name }) => `${encoded(name)}=${encoded(given.query[name])}`)
  const headers = Object.fromEntries(
    parameters
      .filter(({ in: place, name }) => place === 'header' && !blank(given.header[name]))
      .map(({ name }) => [name, given.header[name]])
  )
  const text = blank(given.body) ? undefined : given.body
  if (text !== undefined && body?.type === 'application/json') headers['Content-Type'] = 'application/json'
  if (caller.kind === 'token') headers.Authorization = `Bearer ${caller.token.trim()}`
  if (caller.kind === 'session' && method !== 'get' && !blank(caller.csrf))
    headers['X-CSRF-Token'] = caller.csrf
  return {
    url: pathOf(path, name => encoded(given.path[name])) + (query.length === 0 ? '' : `?${query.join('&')}`),
    init: {
      method: method.toUpperCase(),
      headers,
      // A token is tried by itself: what a session may besides would hide what it may not.
      credentials: caller.kind === 'session' ? 'same-origin' : 'omit',
      redirect: 'manual',
      cache: 'no-store',
      ...(text === undefined || method === 'get' ? {} : { body: text })
    }
  }
}

const isHeaderText = text => /^[\x20-\x7e]*$/.test(text)

const blank = text => text === undefined || text.trim() === ''

function jsonFault(text) {
  if (blank(text)) return undefined
  try {
    JSON.parse(text)
    return undefined
  } catch (error) {
    return error.message
  }
}

/** What takes something away is asked for twice. */
export const takesAway = ({ method, path }) =>
  method === 'delete' || /\/(purge|reset|disable|stop)$/.test(path)
