import type { SecretPlace, Secrets } from 'busbar/sdk'
import type { Redactor } from '../log/redactor.js'
import type { Keyring } from './keyring.js'
import { problems } from './problems.js'

/** What a plugin is handed: its id is part of every place, so that it opens its own values only. */
export function secretsFor(keyring: Keyring, redactor: Redactor, pluginId: string): Secrets {
  return {
    seal: (plaintext, place) => keyring.seal(plaintext, placeText(pluginId, place)),
    open: (sealed, place) => keyring.open(sealed, placeText(pluginId, place)),
    redact: values => redactor.add(values),
    clean: text => redactor.clean(text),
    scope: () => redactor.scope(),
    sign: text => keyring.sign(text, pluginId),
    verify: (text, code) => keyring.verify(text, code, pluginId)
  }
}

/** Unambiguous, as only the row may contain a slash. */
function placeText(pluginId: string, { table, column, row }: SecretPlace): string {
  const place = `${pluginId}/${table}/${column}/${row}`
  if ([pluginId, table, column].some(name => name === '' || name.includes('/')))
    throw problems.badPlace({ place })
  return place
}
