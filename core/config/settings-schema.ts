import type { TSchema } from 'busbar/sdk'
import { type DeclaredVariable, variableOf } from '../../sdk/settings.js'

/** A field that a variable sets. */
export interface VariableField extends DeclaredVariable {
  readonly schema: TSchema
  /** The schema of an object with the variable as its one key: faults name the variable then. */
  readonly asObject: TSchema
  /** It has no default, and the plugin does not start without it. */
  readonly isRequired: boolean
}

/** The schema of a plugin's settings, taken apart by who sets them. */
export interface SettingsSchema {
  /** Without the fields that variables set; undefined when the plugin has no settings. */
  readonly stored: TSchema | undefined
  readonly variables: ReadonlyMap<string, VariableField>
}

const none: SettingsSchema = Object.freeze({ stored: undefined, variables: new Map() })
// Schemas are module constants: a validator is compiled once for each of their parts.
const known = new WeakMap<TSchema, SettingsSchema>()

export function settingsSchema(config: TSchema | undefined): SettingsSchema {
  if (config === undefined) return none
  const before = known.get(config)
  if (before !== undefined) return before
  const fields = Object.entries((config.properties ?? {}) as Record<string, TSchema>)
  const required = (config.required ?? []) as readonly string[]
  const schema = {
    stored:
      config.properties === undefined
        ? config
        : {
            ...config,
            properties: Object.fromEntries(fields.filter(([, field]) => variableOf(field) === undefined))
          },
    variables: new Map(
      fields.flatMap(([name, field]) => {
        const variable = variableOf(field)
        if (variable === undefined) return []
        const asObject = { type: 'object', properties: { [variable.name]: field } } as unknown as TSchema
        const isRequired = required.includes(name) && field.default === undefined
        return [[name, { ...variable, schema: field, asObject, isRequired }] as const]
      })
    )
  }
  known.set(config, schema)
  return schema
}
