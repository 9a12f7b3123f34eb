import type { AnyPlugin } from 'busbar/sdk'
import { explainFault } from '../../sdk/schema-fault.js'
import { validatorOf } from '../http/schemas.js'

/** The operator's settings do not fit the plugin's schema; the message names the field. */
export class MisconfiguredError extends Error {}

/** A plugin's settings: what the operator gave, checked, with the plugin's defaults for the rest. */
export function pluginConfig ({ config: schema }: AnyPlugin, given: Readonly<Record<string, unknown>>): Readonly<Record<string, unknown>> {
  const config = structuredClone(given)
  if (schema !== undefined) {
    const valid = validatorOf(schema as object, 'body')
    if (valid(config) !== true) throw new MisconfiguredError(explainFault(valid.errors, 'settings'))
  }
  return Object.freeze(config)
}
