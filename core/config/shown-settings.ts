import type { TSchema } from 'busbar/sdk'
import type { Variables } from './environment.js'
import { settingsSchema } from './settings-schema.js'
import { readText } from './variables.js'

type Json = Record<string, unknown>

/**
 * The schema of a plugin's settings for operators, with what each field is now: `x-source` is `default`, `stored` or
 * `environment`, `x-value` the value, left out for secrets and where there is none, and `x-environment` the name of the
 * variable that sets it. Null without settings.
 */
export function shownSettings(
  config: TSchema | undefined,
  stored: Readonly<Record<string, unknown>>,
  variables: Variables
): Json | null {
  if (config === undefined) return null
  if (config.properties === undefined) return config
  const { variables: fields } = settingsSchema(config)
  const shown = Object.entries(config.properties as Record<string, TSchema>).map(([name, schema]) => {
    const declared = fields.get(name)
    const text = declared === undefined ? undefined : variables(declared.name)
    const [source, value] =
      text !== undefined
        ? ['environment', readText(text, schema)]
        : Object.hasOwn(stored, name)
          ? ['stored', stored[name]]
          : ['default', schema.default]
    return [
      name,
      {
        ...schema,
        ...(declared === undefined ? {} : { 'x-environment': declared.name }),
        'x-source': source,
        ...(declared?.secret === true || value === undefined ? {} : { 'x-value': value })
      }
    ]
  })
  return { ...config, properties: Object.fromEntries(shown) as Json }
}
