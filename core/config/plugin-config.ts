import { type AnyPlugin, MisconfiguredError, type TSchema } from 'busbar/sdk'
import { unknownName } from '../schemas/did-you-mean.js'
import { explainFault } from '../schemas/schema-fault.js'
import { validatorOf } from '../schemas/schemas.js'
import type { Variables } from './environment.js'
import { type SettingsSchema, settingsSchema } from './settings-schema.js'
import { unknownKeys } from './unknown-keys.js'
import { readVariables } from './variables.js'

type Values = Readonly<Record<string, unknown>>

/**
 * A plugin's settings: what the operator has stored and what the environment gives, checked, with the plugin's defaults
 * for the rest. Throws a `MisconfiguredError` that names every variable that does not fit, or else the field, and what it
 * takes.
 */
export function pluginConfig(
  { config }: Pick<AnyPlugin, 'config'>,
  stored: Values,
  variables: Variables
): Values {
  const schema = settingsSchema(config as TSchema | undefined)
  refuseUnstorable(schema, stored)
  const { values, faults } = readVariables(schema, variables)
  if (faults.length > 0) throw new MisconfiguredError(faults.join('; '))
  const settings = { ...structuredClone(stored), ...values }
  if (config !== undefined) {
    const valid = validatorOf(config as object, 'body')
    if (valid(settings) !== true) throw new MisconfiguredError(explainFault(valid.errors, 'settings'))
  }
  return Object.freeze(parsed(schema, settings))
}

/** Before the validator, which takes away what a closed object does not name. */
function refuseUnstorable({ stored: schema, variables }: SettingsSchema, stored: Values): void {
  const fixed = Object.keys(stored).filter(field => variables.has(field))
  const open = Object.fromEntries(Object.entries(stored).filter(([field]) => !variables.has(field)))
  const faults = [
    ...fixed.map(
      field => `"${field}" is set by the environment variable ${variables.get(field)?.name} alone`
    ),
    ...unknownKeys(schema, open).map(({ key, known }) =>
      unknownName(key.slice(key.lastIndexOf('/') + 1), known)
    )
  ]
  if (faults.length > 0) throw new MisconfiguredError(`settings: ${faults.join('; ')}`)
}

function parsed({ variables }: SettingsSchema, settings: Record<string, unknown>): Values {
  for (const [field, { name, parse, takes }] of variables) {
    if (parse === undefined || settings[field] === undefined) continue
    settings[field] = parse(settings[field] as never)
    // What a variable gives has been parsed with success before: this was a default.
    if (settings[field] === undefined)
      throw new MisconfiguredError(`the default of ${name} cannot be used; it takes ${takes}`)
  }
  return settings
}
