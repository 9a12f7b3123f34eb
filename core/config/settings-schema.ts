import type { TSchema } from 'busbar/sdk'
import { type DeclaredVariable, variableOf } from '../../sdk/settings.js'

/** A field that a variable sets: how it is declared, and its schema as that of an object with this field alone. */
interface VariableField extends DeclaredVariable {
  readonly schema: TSchema
  readonly alone: TSchema
}

/** The schema of a plugin's settings, taken apart by who sets them. */
export interface SettingsSchema {
  /** Without the fields that variables set; undefined when the plugin has no settings. */
  readonly stored: TSchema | undefined
  readonly variables: ReadonlyMap<string, VariableField>
  readonly required: readonly string[]
}

const none: SettingsSchema = Object.freeze({ stored: undefined, variables: new Map(), required: [] })
// Schemas are module constants: a validator is compiled once for each of their parts.
const known = new WeakMap<TSchema, SettingsSchema>()

export function settingsSchema(config: TSchema | undefined): SettingsSchema {
  if (config === undefined) return none
  const before = known.get(config)
  if (before !== undefined) return before
  const fields = Object.entries((config.properties ?? {}) as Record<string, TSchema>)
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
        const alone = { type: 'object', properties: { [name]: field } } as unknown as TSchema
        return variable === undefined ? [] : [[name, { ...variable, schema: field, alone }] as const]
      })
    ),
    required: (config.required ?? []) as readonly string[]
  }
  known.set(config, schema)
  return schema
}
