import { codeBlock, element, prose } from './dom.js'
import { exampleOf, fieldsOf, limitsText, typeText } from './schema.js'

/** The section of one operation; its details are made when it is opened first. */
export function operationSection(operation) {
  const { id, method, path, summary } = operation
  const section = element(
    'details.operation',
    { id },
    element(
      'summary',
      {},
      element(`span.method.${method}`, {}, method.toUpperCase()),
      pathText(path),
      element('span.title', {}, summary),
      element(
        'span.chips',
        {},
        ...chipsOf(operation).map(([kind, text]) => element(`span.chip.${kind}`, {}, text))
      )
    )
  )
  section.addEventListener('toggle', () => {
    if (section.open && section.children.length === 1) section.append(detailsOf(operation))
  })
  return section
}

const pathText = path =>
  element(
    'span.path',
    {},
    ...path.split(/(\{\w+\})/).map(part => (part.startsWith('{') ? element('var', {}, part) : part))
  )

/** Who may call it, at a glance. */
export function chipsOf({ scope, isPublic, isSessionOnly, isAdmin, pins, limit, type }) {
  return [
    isPublic ? ['public', 'public'] : isSessionOnly ? ['session', 'session only'] : ['scope', scope],
    ...(isAdmin ? [['admin', 'admin']] : []),
    // No token gets as far as its pins there.
    ...(pins === undefined || isSessionOnly ? [] : [['pins', pins]]),
    ...(limit === undefined ? [] : [['limit', `${limit.max} in ${limit.windowSeconds} s`]]),
    ...(type === undefined ? [] : [['type', type]])
  ]
}

function detailsOf(operation) {
  const { parameters, body, responses, description, plugin, id } = operation
  return element(
    'div.details',
    {},
    element('p', {}, ...prose(description)),
    element(
      'p.origin',
      {},
      'From the plugin ',
      element('code', {}, plugin),
      ' · ',
      element('a', { href: `#${id}` }, 'link to this')
    ),
    parameters.length === 0 ? null : element('h4', {}, 'Parameters'),
    parameters.length === 0
      ? null
      : table(
          ['Name', 'In', 'Type', ''],
          parameters.map(parameter => [
            nameCell(parameter.name, parameter.required === true || parameter['x-required'] === true),
            parameter.in,
            typeText(parameter.schema),
            [limitsText(parameter.schema ?? {}), parameter.description ?? '']
              .filter(text => text !== '')
              .join('; ')
          ])
        ),
    ...bodyPart(body),
    element('h4', {}, 'Example'),
    codeBlock(curlOf(operation)),
    element('h4', {}, 'Answers'),
    ...responses.map(answerPart)
  )
}

function bodyPart(body) {
  if (body === undefined) return []
  const fields = fieldsOf(body.schema)
  return [
    element('h4', {}, 'Body', element('small', {}, ` ${body.type}`)),
    fields.length === 0 ? element('p', {}, typeText(body.schema)) : fieldTable(fields)
  ]
}

const fieldTable = fields =>
  table(
    ['Field', 'Type', ''],
    fields.map(({ name, schema, isRequired }) => [
      nameCell(name, isRequired),
      typeText(schema),
      [limitsText(schema), schema.description ?? ''].filter(text => text !== '').join('; ')
    ])
  )

const nameCell = (name, isRequired) =>
  element(
    'span',
    {},
    element('code', {}, name),
    isRequired ? element('span.required', { title: 'required' }, ' required') : null
  )

function table(head, rows) {
  return element(
    'div.scroll',
    {},
    element(
      'table',
      {},
      element('thead', {}, element('tr', {}, ...head.map(text => element('th', {}, text)))),
      element(
        'tbody',
        {},
        ...rows.map(cells => element('tr', {}, ...cells.map(cell => element('td', {}, cell))))
      )
    )
  )
}

function answerPart({ status, description, type, schema }) {
  const isGood = Number(status) < 400
  const head = [
    element(`span.status.${isGood ? 'good' : 'bad'}`, {}, status),
    element('span', {}, description),
    type === undefined || !isGood ? null : element('small', {}, type)
  ]
  const fields = isGood ? fieldsOf(schema) : []
  if (fields.length === 0) return element('div.answer', {}, ...head)
  return element(
    'details.answer',
    {},
    element('summary', {}, ...head),
    fieldTable(fields),
    codeBlock(JSON.stringify(exampleOf(schema), null, 2))
  )
}

const quoted = text => `'${text.replaceAll("'", `'\\''`)}'`

/** A command that makes the request; what the reader has to fill in are shell variables. */
export function curlOf({ method, path, isPublic, isSessionOnly, parameters, body, responses }) {
  const url = path.replace(
    /\{(\w+)\}/g,
    (_, name) => `$${name.replace(/[A-Z]/g, letter => `_${letter}`).toUpperCase()}`
  )
  const query = parameters
    .filter(parameter => parameter.in === 'query' && parameter['x-required'] === true)
    .map(({ name, schema }) => `${name}=${encodeURIComponent(String(exampleOf(schema, name)))}`)
  const isStream = responses.some(({ type }) => type === 'text/event-stream')
  const verb = method === 'get' ? [] : [`-X ${method.toUpperCase()}`]
  const lines = [
    `curl ${[...(isStream ? ['-N'] : []), ...verb, ''].join(' ')}"$BUSBAR_URL${url}${query.length > 0 ? `?${query.join('&')}` : ''}"`
  ]
  if (isSessionOnly) {
    lines.push(`-b "token=$SESSION; csrf_token=$CSRF"`)
    if (method !== 'get') lines.push('-H "X-CSRF-Token: $CSRF"')
  } else if (!isPublic) {
    lines.push('-H "Authorization: Bearer $BUSBAR_TOKEN"')
  }
  if (body?.type === 'application/json')
    lines.push(
      "-H 'Content-Type: application/json'",
      `-d ${quoted(JSON.stringify(exampleOf(body.schema, '', true)))}`
    )
  return lines.join(' \\\n  ')
}
