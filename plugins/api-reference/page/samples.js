import { exampleOf } from './schema.js'

/**
 * Programs that make a request, as texts. `given` is what the reader has filled in: `{ path, query, header, body }`, all texts;
 * what is left open stands there as a variable of the environment.
 */

export const languages = {
  curl: { name: 'curl', write: curlOf },
  javascript: { name: 'JavaScript', write: javascriptOf },
  python: { name: 'Python', write: pythonOf }
}

const nothing = { path: {}, query: {}, header: {}, body: undefined }
const streamType = 'text/event-stream'

/** `projectId` is `PROJECT_ID`. */
const variableOf = name => name.replace(/[A-Z]/g, letter => `_${letter}`).toUpperCase()

/** As in an address, and in a shell between double quotes. */
export const encoded = text =>
  encodeURIComponent(text).replace(
    /[!'()*]/g,
    letter => `%${letter.charCodeAt(0).toString(16).toUpperCase()}`
  )

/** The path of an operation as it stands in an address; its parameters are what `filled` makes of their names. */
export const pathOf = (path, filled) =>
  path
    .split(/\{(\w+)\}/)
    .map((piece, at) => (at % 2 === 1 ? filled(piece) : piece.split('/').map(encoded).join('/')))
    .join('')

const isFilled = text => text !== undefined && text !== ''

/** Pairs that are to be sent: what is filled in, and what must not be left out. */
function queryOf({ parameters }, { query }) {
  return parameters
    .filter(({ in: place }) => place === 'query')
    .flatMap(({ name, schema, 'x-required': isRequired }) =>
      isFilled(query[name])
        ? [[name, query[name]]]
        : isRequired === true
          ? [[name, String(exampleOf(schema, name))]]
          : []
    )
}

/** With its question mark, where there is a query. Names are a plugin's choice, as values are the reader's. */
function queryText(operation, given) {
  const pairs = queryOf(operation, given).map(([name, value]) => `${encoded(name)}=${encoded(value)}`)
  return pairs.length === 0 ? '' : `?${pairs.join('&')}`
}

const headersOf = ({ parameters }, { header }) =>
  parameters
    .filter(({ in: place, name }) => place === 'header' && isFilled(header[name]))
    .map(({ name }) => [name, header[name]])

/** What is in the body: what the reader wrote, where it is JSON, else an example. */
function bodyOf({ body }, { body: text }) {
  if (body?.type !== 'application/json') return undefined
  if (text === undefined) return exampleOf(body.schema, '', true)
  if (text.trim() === '') return undefined
  try {
    return JSON.parse(text)
  } catch {
    return exampleOf(body.schema, '', true)
  }
}

const isStream = ({ responses }) => responses.some(({ type }) => type === streamType)
const answersJson = ({ responses }) =>
  responses.some(({ status, type }) => Number(status) < 300 && type === 'application/json')
const answersNothing = ({ responses }) =>
  !responses.some(({ status, type }) => Number(status) < 300 && type !== undefined)

const quoted = text => `'${text.replaceAll("'", `'\\''`)}'`

/** A command line. */
export function curlOf(operation, given = nothing) {
  const { method, path, isPublic, isSessionOnly, type } = operation
  if (type === 'websocket') return socketCommand(operation, given)
  const url = shellPath(path, given)
  const query = queryText(operation, given)
  const options = ['--fail-with-body', ...(isStream(operation) ? ['-N'] : [])]
  if (method !== 'get') options.push(`-X ${method.toUpperCase()}`)
  const lines = [`curl ${options.join(' ')} "$BUSBAR_URL${url}${query}"`]
  if (isSessionOnly) {
    lines.push(`-b "token=$SESSION; csrf_token=$CSRF"`)
    if (method !== 'get') lines.push('-H "X-CSRF-Token: $CSRF"')
  } else if (!isPublic) {
    lines.push('-H "Authorization: Bearer $BUSBAR_TOKEN"')
  }
  for (const [name, value] of headersOf(operation, given)) lines.push(`-H ${quoted(`${name}: ${value}`)}`)
  const body = bodyOf(operation, given)
  if (body !== undefined)
    lines.push("-H 'Content-Type: application/json'", `-d ${quoted(JSON.stringify(body))}`)
  return lines.join(' \\\n  ')
}

const shellPath = (path, given) =>
  pathOf(path, name => (isFilled(given.path[name]) ? encoded(given.path[name]) : `$${variableOf(name)}`))

const socketCommand = ({ path }, given) =>
  `websocat -H "Authorization: Bearer $BUSBAR_TOKEN" "$BUSBAR_WS_URL${shellPath(path, given)}"`

/** A program for Node.js with `@busbar/client`. */
export function javascriptOf(operation, given = nothing) {
  const { id, method, path, isPublic, isSessionOnly, type } = operation
  if (type === 'websocket') return socketProgram(path, given)
  const names = [...path.matchAll(/\{(\w+)\}/g)].map(match => match[1])
  const parts = [
    ...(names.length === 0
      ? []
      : [
          `params: { ${names
            .map(name =>
              isFilled(given.path[name])
                ? `${name}: ${literal(given.path[name])}`
                : `${name}: process.env.${variableOf(name)}`
            )
            .join(', ')} }`
        ]),
    ...field('query', Object.fromEntries(queryOf(operation, given))),
    ...headerFields(headersOf(operation, given))
  ]
  const body = bodyOf(operation, given)
  if (body !== undefined) parts.push(`body: ${literal(body)}`)
  const sent =
    parts.length === 0 ? '' : `{\n  ${parts.map(text => text.replaceAll('\n', '\n  ')).join(',\n  ')}\n}`
  const client = isSessionOnly
    ? 'const busbar = await createClient({ url: process.env.BUSBAR_URL }).signIn({\n  email: process.env.BUSBAR_EMAIL,\n  password: process.env.BUSBAR_PASSWORD\n})'
    : `const busbar = createClient({ url: process.env.BUSBAR_URL${isPublic ? '' : ', token: process.env.BUSBAR_TOKEN'} })`
  // The client has names for the operations of the platform itself.
  const isOwn = !path.startsWith('/api/x/')
  const call = isOwn
    ? `await busbar.operations.${id}(${sent})`
    : `await busbar.${method}(${[literal(path), ...(sent === '' ? [] : [sent])].join(', ')})`
  const use =
    answersJson(operation) && !isStream(operation)
      ? `console.log(${call})`
      : answersNothing(operation)
        ? call
        : `const answer = ${call}\nfor await (const part of answer.body) process.stdout.write(part)`
  return `import { createClient } from '@busbar/client'\n\n${client}\n${use}\n`
}

const field = (name, values) => (Object.keys(values).length === 0 ? [] : [`${name}: ${literal(values)}`])

/** The key of a request has a place of its own. */
function headerFields(headers) {
  const key = headers.find(([name]) => name === 'Idempotency-Key')
  const others = headers.filter(([name]) => name !== 'Idempotency-Key')
  return [
    ...(key === undefined ? [] : [`idempotencyKey: ${literal(key[1])}`]),
    ...field('headers', Object.fromEntries(others))
  ]
}

/** JSON as JavaScript is written. */
function literal(value) {
  return JSON.stringify(value, null, 2)
    .replace(/^( *)"([A-Za-z_$][\w$]*)":/gm, '$1$2:')
    .replaceAll('\u2028', '\\u2028')
    .replaceAll('\u2029', '\\u2029')
}

const socketProgram = (path, given) => {
  const url = pathOf(path, name =>
    isFilled(given.path[name]) ? encoded(given.path[name]) : `\${process.env.${variableOf(name)}}`
  )
  return `import WebSocket from 'ws'

const address = \`\${process.env.BUSBAR_URL.replace(/^http/, 'ws')}${url}\`
const socket = new WebSocket(address, {
  headers: { authorization: \`Bearer \${process.env.BUSBAR_TOKEN}\` }
})
socket.on('message', text => console.log(String(text)))
`
}

/** A program that hears a channel. */
export const channelProgram = address => `import WebSocket from 'ws'

const socket = new WebSocket(\`\${process.env.BUSBAR_URL.replace(/^http/, 'ws')}/api/ws\`, {
  headers: { authorization: \`Bearer \${process.env.BUSBAR_TOKEN}\` }
})
socket.on('open', () => {
  socket.send(JSON.stringify({ action: 'subscribe', channel: ${JSON.stringify(address)} }))
})
socket.on('message', text => {
  const { event, data } = JSON.parse(text)
  console.log(event, data)
})
`

/** A program for Python 3 with its standard library. */
export function pythonOf(operation, given = nothing) {
  const { method, path, isPublic, isSessionOnly, type } = operation
  if (type === 'websocket')
    return '# The standard library of Python has no WebSocket client: see the sample in JavaScript.\n'
  const query = queryText(operation, given)
  const body = bodyOf(operation, given)
  const headers = [
    ...(isSessionOnly
      ? [
          ['Cookie', `"token=" + os.environ["SESSION"] + "; csrf_token=" + os.environ["CSRF"]`],
          ...(method === 'get' ? [] : [['X-CSRF-Token', 'os.environ["CSRF"]']])
        ]
      : isPublic
        ? []
        : [['Authorization', '"Bearer " + os.environ["BUSBAR_TOKEN"]']]),
    ...headersOf(operation, given).map(([name, value]) => [name, JSON.stringify(value)]),
    ...(body === undefined ? [] : [['Content-Type', '"application/json"']])
  ]
  const address = path
    .split(/(\{\w+\})/)
    .filter(piece => piece !== '')
    .map(piece => {
      const name = /^\{(\w+)\}$/.exec(piece)?.[1]
      if (name === undefined) return JSON.stringify(pathOf(piece))
      return isFilled(given.path[name])
        ? JSON.stringify(encoded(given.path[name]))
        : `os.environ["${variableOf(name)}"]`
    })
  if (query !== '') address.push(JSON.stringify(query))
  const lines = [
    ...(body === undefined && !answersJson(operation) ? [] : ['import json']),
    'import os',
    'import urllib.error',
    'import urllib.request',
    '',
    'request = urllib.request.Request(',
    `    os.environ["BUSBAR_URL"] + ${address.join(' + ')},`,
    `    method="${method.toUpperCase()}",`,
    ...(headers.length === 0
      ? []
      : [
          '    headers={',
          ...headers.map(([name, value]) => `        ${JSON.stringify(name)}: ${value},`),
          '    },'
        ]),
    ...(body === undefined ? [] : [`    data=json.dumps(${pythonLiteral(body)}).encode(),`]),
    ')',
    'try:',
    '    with urllib.request.urlopen(request) as answer:',
    ...(isStream(operation)
      ? ['        for line in answer:', '            print(line.decode(), end="")']
      : answersJson(operation)
        ? ['        print(json.load(answer))']
        : answersNothing(operation)
          ? ['        print(answer.status)']
          : ['        print(answer.read().decode())']),
    'except urllib.error.HTTPError as error:',
    '    raise SystemExit(error.read().decode())',
    ''
  ]
  return lines.join('\n')
}

/** JSON as Python is written. */
function pythonLiteral(value) {
  if (value === null) return 'None'
  if (value === true) return 'True'
  if (value === false) return 'False'
  if (Array.isArray(value)) return `[${value.map(pythonLiteral).join(', ')}]`
  if (typeof value === 'object')
    return `{${Object.entries(value)
      .map(([key, inner]) => `${JSON.stringify(key)}: ${pythonLiteral(inner)}`)
      .join(', ')}}`
  return JSON.stringify(value)
}
