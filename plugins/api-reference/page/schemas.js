import { codeBlock, element, markdown } from './dom.js'
import { fieldList } from './fields.js'
import { childrenOf, exampleOf } from './schema.js'

/** The section of one named schema; its details are made when it is opened first. */
export function schemaSection({ id, name, description, schema }) {
  const section = element(
    'details.operation',
    { id },
    element(
      'summary',
      {},
      element('span.path', {}, name),
      element('span.title', {}, description.split('\n')[0])
    )
  )
  section.addEventListener('toggle', () => {
    if (!section.open || section.children.length > 1) return
    const fields = childrenOf(schema)
    section.append(
      element(
        'div.details',
        {},
        ...markdown(description),
        fields.length === 0 ? null : fieldList(fields),
        element('h4', {}, 'Example'),
        codeBlock(JSON.stringify(exampleOf(schema), null, 2))
      )
    )
  })
  return section
}
