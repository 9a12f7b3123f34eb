import { showAnswer } from './answer.js'
import { callerHint } from './caller.js'
import { element } from './dom.js'
import { requestOf, takesAway } from './request.js'
import { exampleOf } from './schema.js'

/** A form that makes the request from this page. `onChange` hears what is filled in. */
export function tryIt(operation, caller, onChange) {
  const given = { path: {}, query: {}, header: {}, body: undefined }
  const inputs = new Map()
  const rows = operation.parameters.map(parameter => {
    const { name, in: place } = parameter
    const input = inputOf(operation.id, parameter)
    inputs.set(name, input)
    input.addEventListener('input', () => {
      given[place][name] = input.value
      onChange(given)
    })
    return element(
      'label.row',
      {},
      element('span', {}, element('code', {}, name), element('small', {}, ` ${place}`)),
      input
    )
  })
  const body = bodyInput(operation)
  if (body !== undefined) {
    inputs.set('body', body)
    given.body = body.value
    body.addEventListener('input', () => {
      given.body = body.value
      onChange(given)
    })
  }
  const send = element('button.send', { type: 'submit' }, 'Send')
  const stop = element('button.quiet', { type: 'button', hidden: '' }, 'Stop')
  const message = element('p.note', { role: 'alert', hidden: '' })
  const hint = element('p.hint', { hidden: '' })
  const outcome = element('div', { 'aria-live': 'polite' })
  const say = text => {
    message.hidden = text === undefined
    message.textContent = text ?? ''
  }
  const showHint = () => {
    const text = callerHint(operation, caller.current())
    hint.hidden = text === undefined
    hint.textContent = text ?? ''
  }
  caller.onChange(showHint)
  showHint()

  let armed = false
  const disarm = () => {
    armed = false
    send.textContent = 'Send'
    send.classList.remove('danger')
  }
  send.addEventListener('blur', disarm)
  const form = element(
    'form.try',
    { 'aria-label': `Try ${operation.summary}`, novalidate: '' },
    ...rows,
    body === undefined
      ? null
      : element(
          'label.row.tall',
          {},
          element('span', {}, element('code', {}, 'body'), element('small', {}, ' JSON')),
          body
        ),
    hint,
    message,
    element('div.actions', {}, send, stop),
    outcome
  )
  form.addEventListener('submit', event => {
    event.preventDefault()
    const request = requestOf(operation, given, caller.current())
    for (const input of inputs.values()) input.removeAttribute('aria-invalid')
    if (request.fault !== undefined) {
      say(`${request.fault}.`)
      const input = inputs.get(request.field)
      input?.setAttribute('aria-invalid', 'true')
      input?.focus()
      return
    }
    say(undefined)
    if (takesAway(operation) && !armed) {
      armed = true
      send.textContent = `Really ${operation.method.toUpperCase()} ${request.url}?`
      send.classList.add('danger')
      return
    }
    disarm()
    void run(request)
  })

  async function run({ url, init }) {
    const controller = new AbortController()
    const end = () => controller.abort()
    send.disabled = true
    stop.hidden = false
    stop.addEventListener('click', end)
    outcome.replaceChildren()
    const begin = performance.now()
    try {
      const response = await answerOf(url, { ...init, signal: controller.signal })
      const { node, read } = await showAnswer(response, performance.now() - begin)
      outcome.replaceChildren(node)
      showHint()
      await read()
    } catch (error) {
      if (!controller.signal.aborted)
        say(`No answer came: ${error.message}. Is the platform running, and does this browser reach it?`)
      else if (outcome.children.length === 0) say('Stopped before an answer came.')
    } finally {
      stop.removeEventListener('click', end)
      stop.hidden = true
      send.disabled = false
    }
  }

  /** A session lasts an hour, and renews itself as that of the dashboard does. */
  async function answerOf(url, init) {
    const response = await fetch(url, init)
    if (response.status !== 401 || operation.isPublic || caller.current().kind !== 'session') return response
    const csrf = caller.current().csrf
    const renewed = await fetch('/api/auth/refresh', {
      method: 'POST',
      headers: csrf === undefined ? {} : { 'X-CSRF-Token': csrf },
      signal: init.signal
    })
    if (!renewed.ok) return response
    const fresh = caller.current().csrf
    return await fetch(url, {
      ...init,
      headers: {
        ...init.headers,
        ...(init.headers['X-CSRF-Token'] !== undefined && fresh !== undefined && { 'X-CSRF-Token': fresh })
      }
    })
  }
  return { node: form, given }
}

function inputOf(operationId, { name, in: place, schema = {} }) {
  const attributes = { name, id: `${operationId}/${place}/${name}`, autocomplete: 'off', spellcheck: 'false' }
  if (schema.enum !== undefined)
    return element(
      'select',
      attributes,
      element('option', { value: '' }, ''),
      ...schema.enum.map(value => element('option', { value: String(value) }, String(value)))
    )
  const example = schema.examples?.[0] ?? (schema.format === 'uuid' ? exampleOf(schema, name) : '')
  return element('input', { ...attributes, type: 'text', placeholder: String(example) })
}

function bodyInput({ id, body, method }) {
  if (body === undefined || method === 'get') return undefined
  const input = element('textarea', { id: `${id}/body`, rows: '8', spellcheck: 'false', autocomplete: 'off' })
  if (body.type === 'application/json')
    input.value = JSON.stringify(exampleOf(body.schema, '', true), null, 2)
  input.rows = Math.min(24, Math.max(4, input.value.split('\n').length + 1))
  return input
}
