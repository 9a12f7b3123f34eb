import type { AnyPlugin, TSchema } from 'busbar/sdk'
import { explainFault } from '../schemas/schema-fault.js'
import { validatorOf } from '../schemas/schemas.js'
import { unknownName } from './did-you-mean.js'
import { unknownKeys } from './unknown-keys.js'

/** The operator's settings do not fit the plugin's schema; the message names the field. */
export class MisconfiguredError extends Error {}

/** A plugin's settings: what the operator gave, checked, with the plugin's defaults for the rest. */
export function pluginConfig(
  { config: schema }: AnyPlugin,
  given: Readonly<Record<string, unknown>>
): Readonly<Record<string, unknown>> {
  const config = structuredClone(given)
  // Before the validator, which takes away what a closed object does not name.
  const unknown = unknownKeys(schema as TSchema | undefined, config)
  if (unknown.length > 0)
    throw new MisconfiguredError(
      `settings: ${unknown.map(({ key, known }) => unknownName(key.slice(key.lastIndexOf('/') + 1), known)).join('; ')}`
    )
  if (schema !== undefined) {
    const valid = validatorOf(schema as object, 'body')
    if (valid(config) !== true) throw new MisconfiguredError(explainFault(valid.errors, 'settings'))
  }
  return Object.freeze(config)
}
