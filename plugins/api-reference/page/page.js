import { element } from './dom.js'
import { operationSection } from './operation.js'
import { resolved } from './schema.js'

/** The operations of an OpenAPI description, as the page shows them. */
export function operationsOf({ paths, components }) {
  const whole = schema => resolved(schema, components.schemas)
  const part = ({ $ref: reference, ...rest }, parts = {}) => ({
    ...(reference === undefined ? {} : parts[reference.slice(reference.lastIndexOf('/') + 1)]),
    ...rest
  })
  return Object.entries(paths).flatMap(([path, methods]) =>
    Object.entries(methods).map(([method, operation]) => {
      const {
        operationId: id,
        summary,
        description,
        tags,
        security,
        parameters: listed = [],
        requestBody,
        responses: answers
      } = operation
      const parameters = listed.map(parameter => part(parameter, components.parameters))
      const responses = Object.fromEntries(
        Object.entries(answers).map(([status, answer]) => [status, part(answer, components.responses)])
      )
      const scope = security.find(way => way.token !== undefined)?.token[0]
      const [bodyType, bodyContent] = Object.entries(requestBody?.content ?? {})[0] ?? []
      return {
        id,
        method,
        path,
        summary,
        description,
        parameters: parameters.map(parameter => ({ ...parameter, schema: whole(parameter.schema) })),
        scope,
        group: tags[0],
        plugin: operation['x-plugin'],
        isPublic: security.length === 0,
        isSessionOnly: security.length > 0 && scope === undefined,
        isAdmin: operation['x-role'] === 'admin',
        pins: pinsOf(description),
        limit: operation['x-rate-limit'],
        type: path.startsWith('/api/ws')
          ? 'websocket'
          : responses['200']?.content?.['text/event-stream'] === undefined
            ? undefined
            : 'event stream',
        body: bodyType === undefined ? undefined : { type: bodyType, schema: whole(bodyContent.schema) },
        responses: Object.entries(responses).map(([status, { description: text, content = {} }]) => {
          const [type, value] = Object.entries(content)[0] ?? []
          return { status, description: text, type, schema: whole(value?.schema) }
        })
      }
    })
  )
}

/** What becomes of a token that is pinned to projects. */
function pinsOf(description) {
  if (description.includes('A token pinned to projects is refused')) return 'never pinned'
  if (description.includes('sees those only')) return 'pins filter'
  return description.includes('pinned to other projects is refused') ? 'pins apply' : undefined
}

const searchText = ({
  method,
  path,
  summary,
  group,
  plugin,
  scope,
  isPublic,
  isSessionOnly,
  isAdmin,
  pins
}) =>
  [
    method,
    path,
    path.replace(/[{}/_-]+/g, ' '),
    summary,
    group,
    plugin,
    scope,
    isPublic && 'public',
    isSessionOnly && 'session only',
    isAdmin && 'admin',
    pins
  ]
    .filter(Boolean)
    .join(' ')
    .toLowerCase()

function show(operations) {
  const contents = document.getElementById('contents')
  const main = document.getElementById('operations')
  const groups = new Map()
  for (const operation of operations)
    groups.set(operation.group, [...(groups.get(operation.group) ?? []), operation])
  const shown = [...groups]
    .sort(([a], [b]) => (a < b ? -1 : 1))
    .map(([name, members]) => {
      const entries = members.map(operation => ({
        text: searchText(operation),
        section: operationSection(operation),
        link: element(
          'li',
          {},
          element(
            'a',
            { href: `#${operation.id}` },
            element(
              `span.method.${operation.method}`,
              {},
              operation.method === 'delete' ? 'DEL' : operation.method.toUpperCase()
            ),
            element('span', {}, operation.summary)
          )
        )
      }))
      const section = element('section', {}, element('h2', {}, name), ...entries.map(entry => entry.section))
      const list = element(
        'details.group',
        {},
        element('summary', {}, name, element('small', {}, String(members.length))),
        element('ul', {}, ...entries.map(entry => entry.link))
      )
      main.append(section)
      contents.append(list)
      return { section, list, entries }
    })
  return shown
}

/** Every word must occur; what does not match is hidden. */
function filter(shown, words) {
  let count = 0
  for (const { section, list, entries } of shown) {
    let here = 0
    for (const entry of entries) {
      const matches = words.every(word => entry.text.includes(word))
      entry.section.hidden = entry.link.hidden = !matches
      if (matches) here++
    }
    section.hidden = list.hidden = here === 0
    list.open = words.length > 0 && here > 0
    count += here
  }
  return count
}

function openLinked() {
  const linked = document.getElementById(decodeURIComponent(location.hash.slice(1)))
  if (linked?.classList.contains('operation')) {
    linked.hidden = false
    linked.open = true
    linked.scrollIntoView()
  }
}

async function start() {
  const state = document.getElementById('state')
  const search = document.getElementById('search')
  const answer = await fetch('/api/openapi.json')
  if (!answer.ok) throw new Error(`/api/openapi.json answered ${answer.status}: ${await answer.text()}`)
  const operations = operationsOf(await answer.json())
  const shown = show(operations)
  const say = () => {
    const words = search.value
      .toLowerCase()
      .split(/\s+/)
      .filter(word => word !== '')
    const count = filter(shown, words)
    document.getElementById('basics').hidden = words.length > 0
    state.textContent =
      words.length === 0
        ? `${count} operations, as this instance serves them now.`
        : count === 0
          ? 'No operation matches.'
          : `${count} of ${operations.length} operations match.`
  }
  say()
  openLinked()
  search.addEventListener('input', say)
  addEventListener('hashchange', openLinked)
  addEventListener('keydown', event => {
    if (event.key === '/' && document.activeElement !== search) {
      event.preventDefault()
      search.focus()
    }
    if (event.key === 'Escape' && document.activeElement === search) {
      search.value = ''
      say()
      search.blur()
    }
  })
}

if (typeof document !== 'undefined') {
  start().catch(error => {
    document.getElementById('state').textContent =
      `The description could not be read: ${error.message}. Reload to try again.`
  })
}
