import { callerControl } from './caller.js'
import { channelSection } from './channels.js'
import { channelsOf, operationsOf, schemasOf } from './description.js'
import { element } from './dom.js'
import { operationSection } from './operation.js'
import { schemaSection } from './schemas.js'

/** Everything that can be found: `{ id, group, text, label, section }`, the groups in their order. */
function entriesOf(operations, channels, schemas, caller) {
  const sorted = [...operations].sort((a, b) => (a.group === b.group ? 0 : a.group < b.group ? -1 : 1))
  return [
    ...sorted.map(operation => ({
      id: operation.id,
      group: operation.group,
      text: searchText(operation),
      label: [
        element(
          `span.method.${operation.method}`,
          {},
          operation.method === 'delete' ? 'DEL' : operation.method.toUpperCase()
        ),
        element('span', {}, operation.summary)
      ],
      section: operationSection(operation, caller)
    })),
    ...channels.map(channel => ({
      id: channel.id,
      group: 'Channels',
      text: `channel ${channel.address} ${channel.summary} ${channel.plugin} ${channel.events.map(({ name }) => name).join(' ')}`.toLowerCase(),
      label: [element('span', {}, channel.address)],
      section: channelSection(channel, caller)
    })),
    ...schemas.map(schema => ({
      id: schema.id,
      group: 'Schemas',
      text: `schema ${schema.name} ${schema.description}`.toLowerCase(),
      label: [element('span', {}, schema.name)],
      section: schemaSection(schema)
    }))
  ]
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

/** Puts the entries on the page, by group. */
function show(entries) {
  const contents = document.getElementById('contents')
  const main = document.getElementById('operations')
  const groups = new Map()
  for (const entry of entries) groups.set(entry.group, [...(groups.get(entry.group) ?? []), entry])
  return [...groups].map(([name, members]) => {
    const links = members.map(({ id, label }) =>
      element('li', {}, element('a', { href: `#${encodeURI(id)}` }, ...label))
    )
    const section = element(
      'section',
      { id: `group/${name}` },
      element('h2', {}, name),
      ...members.map(entry => entry.section)
    )
    const list = element(
      'details.group',
      {},
      element('summary', {}, name, element('small', {}, String(members.length))),
      element('ul', {}, ...links)
    )
    main.append(section)
    contents.append(list)
    return { section, list, entries: members.map((entry, index) => ({ ...entry, link: links[index] })) }
  })
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

/** What the address names; an address may be cut or mistyped. */
function linkedId() {
  const name = location.hash.slice(1)
  try {
    return decodeURIComponent(name)
  } catch {
    return name
  }
}

/** Opens what the address names, be it a group or an entry. */
function openLinked() {
  const linked = document.getElementById(linkedId())
  if (linked === null) return
  linked.hidden = false
  if (linked.parentElement?.hidden === true) linked.parentElement.hidden = false
  if (linked.classList.contains('operation')) linked.open = true
  linked.scrollIntoView()
}

/** The address is a link to what was opened last. */
function followOpened(entries) {
  for (const { id, section } of entries)
    section.addEventListener('toggle', () => {
      if (section.open) history.replaceState(null, '', `#${encodeURI(id)}`)
    })
}

async function read(path) {
  const answer = await fetch(path)
  if (!answer.ok) throw new Error(`${path} answered ${answer.status}: ${await answer.text()}`)
  return await answer.json()
}

async function start() {
  const state = document.getElementById('state')
  const search = document.getElementById('search')
  const caller = callerControl()
  document.querySelector('header').append(caller.node)
  const [api, live] = await Promise.all([read('/api/openapi.json'), read('/api/asyncapi.json')])
  const operations = operationsOf(api)
  const channels = channelsOf(live)
  const entries = entriesOf(operations, channels, schemasOf(api), caller)
  const shown = show(entries)
  const say = () => {
    const words = search.value
      .toLowerCase()
      .split(/\s+/)
      .filter(word => word !== '')
    const count = filter(shown, words)
    document.getElementById('basics').hidden = words.length > 0
    state.textContent =
      words.length === 0
        ? `${operations.length} operations and ${channels.length} channels, as this instance serves them now.`
        : count === 0
          ? 'Nothing matches.'
          : `${count} of ${entries.length} match.`
  }
  say()
  openLinked()
  followOpened(entries)
  search.addEventListener('input', say)
  addEventListener('hashchange', openLinked)
  listenForKeys(search, say)
}

function listenForKeys(search, say) {
  const isTyping = () => ['INPUT', 'TEXTAREA', 'SELECT'].includes(document.activeElement?.tagName)
  addEventListener('keydown', event => {
    if (event.key === '/' && !isTyping()) {
      event.preventDefault()
      search.focus()
    }
    if (event.key === 'Escape' && document.activeElement === search) {
      search.value = ''
      say()
      search.blur()
    }
  })
  const menu = document.getElementById('menu')
  const contents = document.getElementById('contents')
  const fold = isOpen => {
    contents.classList.toggle('open', isOpen)
    menu.setAttribute('aria-expanded', String(isOpen))
  }
  menu.addEventListener('click', () => fold(!contents.classList.contains('open')))
  contents.addEventListener('click', event => {
    if (event.target.closest('a') !== null) fold(false)
  })
}

start().catch(error => {
  document.getElementById('state').textContent =
    `The description could not be read: ${error.message}. Reload to try again.`
})
