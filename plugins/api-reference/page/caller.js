import { element } from './dom.js'

/** As whom the page calls: with the session of this browser, with a token, or as nobody. */

const storageKey = 'busbar.reference.token'
const kinds = { session: 'the session of this browser', token: 'a token', nobody: 'nobody' }

const cookie = name =>
  document.cookie
    .split('; ')
    .find(pair => pair.startsWith(`${name}=`))
    ?.slice(name.length + 1)

/** The control, and who is chosen. The token lives as long as this tab, and is in no address. */
export function callerControl() {
  const select = element(
    'select',
    { id: 'caller', 'aria-label': 'Call as' },
    ...Object.entries(kinds).map(([kind, text]) => element('option', { value: kind }, text))
  )
  const input = element('input', {
    id: 'token',
    type: 'password',
    placeholder: 'busbar_pat_…',
    'aria-label': 'Personal access token',
    autocomplete: 'off',
    spellcheck: 'false'
  })
  const forget = element('button.quiet', { type: 'button' }, 'Forget')
  input.value = sessionStorage.getItem(storageKey) ?? ''
  select.value = input.value === '' ? 'session' : 'token'
  const listeners = []
  const show = () => {
    input.hidden = select.value !== 'token'
    forget.hidden = select.value !== 'token' || input.value === ''
    for (const listener of listeners) listener()
  }
  const keep = () => {
    if (input.value === '') sessionStorage.removeItem(storageKey)
    else sessionStorage.setItem(storageKey, input.value)
    show()
  }
  select.addEventListener('change', show)
  input.addEventListener('input', keep)
  forget.addEventListener('click', () => {
    input.value = ''
    keep()
    input.focus()
  })
  show()
  return {
    node: element('div.caller', {}, element('span', {}, 'Call as'), select, input, forget),
    current: () =>
      select.value === 'session'
        ? { kind: 'session', csrf: cookie('csrf_token') }
        : select.value === 'token'
          ? { kind: 'token', token: input.value }
          : { kind: 'nobody' },
    onChange: listener => listeners.push(listener)
  }
}

/** What the chosen caller cannot do with an operation, before it is tried; undefined where nothing is known. */
export function callerHint({ isPublic, isSessionOnly }, { kind, csrf, token }) {
  if (isPublic) return undefined
  if (kind === 'nobody') return 'It asks for a credential: nobody is answered 401.'
  if (kind === 'token' && isSessionOnly) return 'It is for sessions only: a token is answered 403.'
  if (kind === 'token' && (token ?? '') === '') return 'Paste a token at the top of the page.'
  if (kind === 'session' && csrf === undefined)
    return 'This browser is not signed in: POST /api/auth/login signs in, or choose a token at the top of the page.'
  return undefined
}
