import { codeBlock, element, markdown } from './dom.js'
import { fieldList, typeNode } from './fields.js'
import { channelProgram } from './samples.js'
import { childrenOf, exampleOf } from './schema.js'

const mostShown = 200

/** The section of one channel; its details are made when it is opened first. */
export function channelSection(channel, caller) {
  const { id, address, summary, scope, isAdmin, events } = channel
  const section = element(
    'details.operation',
    { id },
    element(
      'summary',
      {},
      element('span.method.channel', {}, 'HEAR'),
      element('span.path', {}, address),
      element('span.title', {}, summary),
      element(
        'span.chips',
        {},
        element('span.chip.scope', {}, scope ?? 'session only'),
        isAdmin ? element('span.chip.admin', {}, 'admin') : null,
        ...events.map(({ name }) => element('span.chip', {}, name))
      )
    )
  )
  section.addEventListener('toggle', () => {
    if (section.open && section.children.length === 1) section.append(detailsOf(channel, caller))
  })
  return section
}

function detailsOf({ id, address, description, plugin, parameters, events }, caller) {
  const sample = element('div')
  const showSample = name => sample.replaceChildren(codeBlock(channelProgram(name)))
  const listener = listenForm(id, address, parameters, caller, showSample)
  showSample(address)
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
        ...(parameters.length === 0
          ? []
          : [
              element('h4', {}, 'Parameters'),
              fieldList(
                parameters.map(({ name, description: text }) => ({
                  name,
                  schema: { type: 'string', format: 'uuid', description: text },
                  isRequired: true
                }))
              )
            ]),
        element('h4', {}, 'Events'),
        ...events.map(event => eventPart(address, event))
      ),
      element(
        'div',
        {},
        element('h4', {}, 'Sample in JavaScript'),
        sample,
        element('h4', {}, 'Listen'),
        listener
      )
    )
  )
}

function eventPart(address, { name, summary, schema }) {
  const fields = childrenOf(schema)
  const message = { channel: address, event: name, data: exampleOf(schema) }
  return element(
    'details.answer',
    { open: '' },
    element(
      'summary',
      {},
      element('span.status.good', {}, name),
      element('span', {}, summary),
      typeNode(schema)
    ),
    fields.length === 0 ? null : fieldList(fields),
    codeBlock(JSON.stringify(message, null, 2))
  )
}

/** Hears the channel from this page. A browser sends no header with a WebSocket, so its session alone can. */
function listenForm(id, address, parameters, caller, onAddress) {
  const [parameter] = parameters
  const input =
    parameter === undefined
      ? undefined
      : element('input', {
          id: `${id}/${parameter.name}`,
          type: 'text',
          autocomplete: 'off',
          spellcheck: 'false',
          placeholder: exampleOf({ type: 'string', format: 'uuid' })
        })
  const listen = element('button.send', { type: 'submit' }, 'Listen')
  const stop = element('button.quiet', { type: 'button', hidden: '' }, 'Stop')
  const note = element('p.note', { role: 'status', hidden: '' })
  const heard = element('code')
  const say = text => {
    note.hidden = false
    note.textContent = text
  }
  const name = () => (input === undefined ? address : address.replace(/\{\w+\}/, input.value.trim()))
  const messages = []
  const output = element(
    'div.block',
    { hidden: '' },
    element('pre', { tabindex: '0', 'aria-label': 'Messages', 'aria-live': 'polite' }, heard)
  )
  input?.addEventListener('input', () => onAddress(input.value.trim() === '' ? address : name()))
  const form = element(
    'form.try',
    { 'aria-label': `Listen to ${address}`, novalidate: '' },
    input === undefined
      ? null
      : element('label.row', {}, element('span', {}, element('code', {}, parameter.name)), input),
    element('p.hint', {}, 'With the session of this browser: a browser sends no token with a WebSocket.'),
    note,
    element('div.actions', {}, listen, stop),
    output
  )
  form.addEventListener('submit', event => {
    event.preventDefault()
    if (input !== undefined && input.value.trim() === '') {
      say(`${parameter.name} is needed.`)
      input.focus()
      return
    }
    if (caller.current().kind !== 'session')
      say('The chosen caller is not used here: the session of this browser is.')
    const socket = new WebSocket(`${location.origin.replace(/^http/, 'ws')}/api/ws`)
    const end = () => socket.close(1000)
    messages.length = 0
    heard.textContent = ''
    output.hidden = false
    listen.disabled = true
    stop.hidden = false
    stop.addEventListener('click', end, { once: true })
    socket.addEventListener('open', () => {
      socket.send(JSON.stringify({ action: 'subscribe', channel: name() }))
      say(`Listening to ${name()}.`)
    })
    socket.addEventListener('message', ({ data }) => {
      messages.push(String(data))
      if (messages.length > mostShown) messages.shift()
      heard.textContent = messages.join('\n')
    })
    socket.addEventListener('close', ({ code, reason, wasClean }) => {
      stop.hidden = true
      listen.disabled = false
      say(
        wasClean
          ? code === 1000
            ? 'The connection is closed.'
            : `The platform closed the connection: ${code} ${reason}.`
          : 'No connection: is this browser signed in? POST /api/auth/login signs in.'
      )
    })
  })
  return form
}
