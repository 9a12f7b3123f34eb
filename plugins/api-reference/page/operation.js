import { codeBlock, element, markdown, prose } from './dom.js'
import { fieldList, typeNode } from './fields.js'
import { languages } from './samples.js'
import { childrenOf, exampleOf } from './schema.js'
import { tryIt } from './try-it.js'

/** The section of one operation; its details are made when it is opened first. */
export function operationSection(operation, caller) {
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
    if (section.open && section.children.length === 1) section.append(detailsOf(operation, caller))
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

function detailsOf(operation, caller) {
  const { parameters, body, responses, description, plugin, id, type } = operation
  const samples = sampleBlock(operation)
  const form = type === 'websocket' ? undefined : tryIt(operation, caller, samples.show)
  if (form !== undefined) samples.show(form.given)
  return element(
    'div.details',
    {},
    ...markdown(description),
    element(
      'p.origin',
      {},
      'From the plugin ',
      element('code', {}, plugin),
      ' · ',
      element('a', { href: `#${id}` }, 'link to this')
    ),
    element(
      'div.columns',
      {},
      element(
        'div',
        {},
        parameters.length === 0 ? null : element('h4', {}, 'Parameters'),
        parameters.length === 0
          ? null
          : fieldList(
              parameters.map(
                ({ name, in: where, schema, description: text, required, 'x-required': wanted }) => ({
                  name,
                  where,
                  schema: { ...schema, description: text },
                  isRequired: required === true || wanted === true
                })
              )
            ),
        ...bodyPart(body),
        element('h4', {}, 'Answers'),
        ...responses.map(answerPart)
      ),
      element(
        'div',
        {},
        element('h4', {}, 'Sample'),
        samples.node,
        form === undefined ? null : element('h4', {}, 'Try it'),
        form === undefined
          ? element('p.hint', {}, 'A WebSocket: the channels below can be heard from this page.')
          : form.node
      )
    )
  )
}

function bodyPart(body) {
  if (body === undefined) return []
  const fields = childrenOf(body.schema)
  return [
    element('h4', {}, 'Body', element('small', {}, ` ${body.type} `), typeNode(body.schema)),
    body.schema?.description === undefined ? null : element('p', {}, ...prose(body.schema.description)),
    fields.length === 0 ? null : fieldList(fields)
  ]
}

/** The language is the reader's, for the whole page. */
let language = 'curl'
const blocks = new Set()

function sampleBlock(operation) {
  let given
  const place = element('div')
  const tabs = element(
    'div.tabs',
    { role: 'group', 'aria-label': 'Language of the sample' },
    ...Object.entries(languages).map(([key, { name }]) => {
      const button = element('button', { type: 'button', 'data-language': key }, name)
      button.addEventListener('click', () => {
        language = key
        for (const render of blocks) render()
      })
      return button
    })
  )
  const render = () => {
    place.replaceChildren(codeBlock(languages[language].write(operation, given)))
    for (const button of tabs.children)
      button.setAttribute('aria-pressed', String(button.dataset.language === language))
  }
  blocks.add(render)
  render()
  return {
    node: element('div.sample', {}, tabs, place),
    show: now => {
      given = now
      render()
    }
  }
}

function answerPart({ status, description, type, schema, headers, codes }) {
  const isGood = Number(status) < 400
  const [first = '', ...rest] = description.split('\n')
  const head = [
    element(`span.status.${isGood ? 'good' : 'bad'}`, {}, status),
    element('span', {}, ...prose(first)),
    type === undefined || !isGood ? null : element('small', {}, type)
  ]
  const told = Object.entries(headers).map(([name, { description: text, schema: shape, $ref: _ }]) => ({
    name,
    where: 'header',
    schema: { ...shape, description: text }
  }))
  const fields = isGood ? childrenOf(schema) : []
  const sample = sampleAnswer(isGood, schema, codes, rest)
  if (fields.length === 0 && told.length === 0 && rest.length === 0 && sample === undefined)
    return element('div.answer', {}, ...head)
  const details = element('details.answer', {}, element('summary', {}, ...head))
  details.addEventListener('toggle', () => {
    if (!details.open || details.children.length > 1) return
    details.append(
      ...[
        ...(rest.length === 0 ? [] : markdown(rest.join('\n'))),
        told.length === 0 ? null : fieldList(told),
        isGood && schema !== undefined ? element('p.origin', {}, 'A body of type ', typeNode(schema)) : null,
        fields.length === 0 ? null : fieldList(fields),
        sample === undefined ? null : codeBlock(JSON.stringify(sample, null, 2))
      ].filter(node => node !== null)
    )
  })
  return details
}

/** What such an answer looks like; undefined where it has no JSON. */
export function sampleAnswer(isGood, schema, codes, lines) {
  if (isGood) return childrenOf(schema).length === 0 ? undefined : exampleOf(schema)
  const [code] = codes
  if (code === undefined) return undefined
  const sentence = lines.find(line => line.startsWith(`- \`${code}\`: `))?.slice(code.length + 6)
  return { error: sentence ?? 'what is wrong, and what to do', code }
}
