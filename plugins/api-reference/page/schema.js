/** Reading JSON schemas: what type a value has, which fields an object, and an example of it. */

const zeroUuid = '3f0c9a52-7d5e-4b1e-8a64-1f0f3b1c9d11'

export const requiredOf = schema => schema?.['x-required'] ?? schema?.required ?? []

const componentPath = '#/components/schemas/'

/**
 * A schema with what it refers to in its place, and the name of that as `x-name`; words beside a reference are nearer than those of
 * what it names.
 */
export function resolved(schema, components, depth = 0) {
  if (Array.isArray(schema)) return schema.map(one => resolved(one, components, depth))
  if (typeof schema !== 'object' || schema === null || depth > 20) return schema
  const { $ref: reference, ...rest } = schema
  const name =
    typeof reference === 'string' && reference.startsWith(componentPath)
      ? reference.slice(componentPath.length)
      : undefined
  const target = name === undefined ? undefined : { ...components[name], 'x-name': name }
  return Object.fromEntries(
    Object.entries({ ...target, ...rest }).map(([key, value]) => [
      key,
      key === 'examples' ? value : resolved(value, components, depth + 1)
    ])
  )
}

/** `string (uuid) or null`, `list of object`. */
export function typeText(schema) {
  if (schema === undefined || schema === null || schema === true) return 'anything'
  if (schema.const !== undefined) return JSON.stringify(schema.const)
  if (schema.enum !== undefined) return schema.enum.map(value => JSON.stringify(value)).join(' | ')
  const options = schema.anyOf ?? schema.oneOf
  if (options !== undefined) return [...new Set(options.map(typeText))].join(' or ')
  const types = [schema.type ?? 'anything'].flat()
  return types
    .map(type => {
      if (type === 'array') return `list of ${typeText(schema.items)}`
      return type === 'string' && schema.format !== undefined ? `string (${schema.format})` : type
    })
    .join(' or ')
}

/** What a value must keep to beyond its type. */
export function limitsText(schema) {
  const limits = []
  const between = (low, high, unit) => {
    if (low > 0 && high !== undefined) limits.push(`${low} to ${high}${unit}`)
    else if (high !== undefined) limits.push(`at most ${high}${unit}`)
    else if (low > 0) limits.push(`at least ${low}${unit}`)
  }
  between(schema.minLength, schema.maxLength, ' characters')
  between(schema.minItems, schema.maxItems, ' items')
  const { minimum } = schema
  // As large as a number of JavaScript can be is no limit to speak of.
  const maximum = schema.maximum < Number.MAX_SAFE_INTEGER ? schema.maximum : undefined
  if (minimum !== undefined && maximum !== undefined) limits.push(`${minimum} to ${maximum}`)
  else if (minimum !== undefined) limits.push(`${minimum} or more`)
  else if (maximum !== undefined) limits.push(`at most ${maximum}`)
  if (schema.default !== undefined) limits.push(`default ${JSON.stringify(schema.default)}`)
  return limits.join(', ')
}

/** The fields of an object, or of the objects in a list, one level of them. */
export function childrenOf(schema, depth = 0) {
  if (schema === undefined || schema === null || depth > 6) return []
  const options = schema.anyOf ?? schema.oneOf
  if (options !== undefined) return options.flatMap(option => childrenOf(option, depth + 1))
  if (schema.items !== undefined && !Array.isArray(schema.items)) return childrenOf(schema.items, depth + 1)
  const required = new Set(requiredOf(schema))
  return Object.entries(schema.properties ?? {}).map(([name, value]) => ({
    name,
    schema: value,
    isRequired: required.has(name)
  }))
}

/** The name of the schema, or of what is in the list that it is. */
export function nameOf(schema) {
  if (schema === undefined || schema === null) return undefined
  if (schema['x-name'] !== undefined) return schema['x-name']
  const options = schema.anyOf ?? schema.oneOf
  return nameOf(options?.find(option => nameOf(option) !== undefined) ?? schema.items)
}

/** A value the schema allows, as small as it can be and still tell something. */
export function exampleOf(schema, name = '', onlyRequired = false, depth = 0) {
  if (schema === undefined || schema === null || schema === true || depth > 6) return null
  if (schema.examples?.length > 0) return schema.examples[0]
  if (schema.default !== undefined) return schema.default
  if (schema.const !== undefined) return schema.const
  if (schema.enum !== undefined) return schema.enum[0]
  const options = schema.anyOf ?? schema.oneOf
  if (options !== undefined) return exampleOf(options[0], name, onlyRequired, depth + 1)
  const type = [schema.type].flat()[0]
  switch (type) {
    case 'object': {
      const required = new Set(requiredOf(schema))
      const entries = Object.entries(schema.properties ?? {}).filter(
        ([key]) => !onlyRequired || required.size === 0 || required.has(key)
      )
      return Object.fromEntries(
        entries.map(([key, value]) => [key, exampleOf(value, key, onlyRequired, depth + 1)])
      )
    }
    case 'array':
      return [exampleOf(schema.items, name, onlyRequired, depth + 1)]
    case 'integer':
    case 'number':
      return Math.max(schema.minimum ?? 0, name.endsWith('port') ? 8080 : 1)
    case 'boolean':
      return true
    case 'string':
      return textExample(schema, name)
    default:
      return null
  }
}

function textExample(schema, name) {
  if (schema.format === 'uuid' || /(^|_)ids?$/.test(name)) return zeroUuid
  if (schema.format === 'date-time' || name.endsWith('_at')) return '2026-01-31T12:00:00.000Z'
  if (name.includes('email')) return 'ada@example.com'
  if (name.includes('password')) return 'a long sentence is a good one'
  if (name === 'slug') return 'shop'
  if (name === 'name') return 'Shop'
  return name === '' ? 'text' : name
}
