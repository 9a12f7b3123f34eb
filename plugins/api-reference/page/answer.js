import { element } from './dom.js'

/** Showing what was answered. It may be anything: it is text here, and never more than a page can hold. */

const longestText = 200_000

/** Reads an answer into a node while it comes. `signal` ends a stream. */
export async function showAnswer(response, milliseconds) {
  const type = response.headers.get('content-type') ?? ''
  const output = element('code')
  const note = element('p.note', { hidden: '' })
  const say = text => {
    note.hidden = false
    note.textContent = text
  }
  const node = element(
    'div.outcome',
    {},
    element(
      'p.line',
      {},
      element(
        `span.status.${response.status < 400 && response.status !== 0 ? 'good' : 'bad'}`,
        {},
        String(response.status)
      ),
      element('span', {}, response.statusText),
      element('small', {}, `${Math.round(milliseconds)} ms`)
    ),
    element(
      'details.headers',
      {},
      element('summary', {}, 'Headers'),
      element(
        'pre',
        {},
        element('code', {}, [...response.headers].map(([name, value]) => `${name}: ${value}`).join('\n'))
      )
    ),
    note,
    element('div.block', {}, element('pre', { tabindex: '0', 'aria-label': 'Body of the answer' }, output))
  )
  if (response.type === 'opaqueredirect') say('It leads elsewhere, which a page may not look at.')
  if (response.status === 429) {
    const seconds = response.headers.get('retry-after')
    say(seconds === null ? 'Too many requests: wait a little.' : `Too many requests: wait ${seconds} s.`)
  }
  return { node, read: async () => await readInto(response, type, output, say) }
}

async function readInto(response, type, output, say) {
  if (response.type === 'opaqueredirect') return
  if (response.body === null || response.status === 204 || response.status === 304) {
    output.textContent = ''
    say('The answer has no body.')
    return
  }
  const isText = /json|text|xml|javascript/.test(type)
  const isStream = type.startsWith('text/event-stream')
  const decoder = new TextDecoder()
  const reader = response.body.getReader()
  let text = ''
  let bytes = 0
  for (;;) {
    const { done, value } = await reader.read()
    if (done) break
    bytes += value.length
    if (!isText) continue
    text += decoder.decode(value, { stream: true })
    if (isStream) {
      // What came last is what one looks at.
      if (text.length > longestText) text = text.slice(-longestText)
      output.textContent = text
    } else if (text.length > longestText) {
      await reader.cancel()
      output.textContent = text.slice(0, longestText)
      say(`Only the first ${longestText.toLocaleString('en')} characters are shown.`)
      return
    }
  }
  if (!isText) say(`${bytes.toLocaleString('en')} bytes of ${type === '' ? 'no type' : type}.`)
  else if (!isStream) output.textContent = type.includes('json') ? pretty(text) : text
}

function pretty(text) {
  try {
    return JSON.stringify(JSON.parse(text), null, 2)
  } catch {
    return text
  }
}
