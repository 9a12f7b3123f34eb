import { element, prose } from './dom.js'
import { childrenOf, limitsText, nameOf, typeText } from './schema.js'

/** What is in an object, as a list in which what is inside again can be opened. */
export function fieldList(fields) {
  return element(
    'ul.fields',
    {},
    ...fields.map(({ name, schema, isRequired, where }) => {
      const limits = limitsText(schema ?? {})
      const inner = childrenOf(schema)
      return element(
        'li',
        {},
        element(
          'div.field',
          {},
          element('code.name', {}, name),
          typeNode(schema),
          ...(where === undefined ? [] : [element('span.where', {}, where)]),
          ...(isRequired ? [element('span.required', {}, 'required')] : []),
          ...(limits === '' ? [] : [element('span.limits', {}, limits)])
        ),
        schema?.description === undefined ? null : element('p', {}, ...prose(schema.description)),
        inner.length === 0 ? null : innerFields(nameOf(schema), inner)
      )
    })
  )
}

/** They are made when they are opened: schemas may hold many others. */
function innerFields(name, inner) {
  const details = element(
    'details.inner',
    {},
    element('summary', {}, name === undefined ? 'Its fields' : `Fields of ${name}`)
  )
  details.addEventListener('toggle', () => {
    if (details.open && details.children.length === 1) details.append(fieldList(inner))
  })
  return details
}

/** The type, with a link where it has a name. */
export function typeNode(schema) {
  const name = nameOf(schema)
  const text = typeText(schema)
  if (name === undefined) return element('span.type', {}, text)
  const isNullable = / or null$|^null or /.test(text)
  const isList = /list of/.test(text)
  return element(
    'span.type',
    {},
    isList ? 'list of ' : '',
    element('a', { href: `#schema/${encodeURIComponent(name)}` }, name),
    isNullable ? ' or null' : ''
  )
}
