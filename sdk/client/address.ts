/** The path with its parameters filled in, and the query behind it. What is undefined is left out. */
export function addressOf(path: string, params: object, query: object): string {
  const values = params as Record<string, unknown>
  const filled = path.replace(/\{(\w+)\}/g, (_, name: string) => {
    const value = values[name]
    if (value === undefined || value === null || value === '')
      throw new TypeError(`${path} needs params.${name}`)
    // They would lead to another operation.
    if (value === '.' || value === '..') throw new TypeError(`${path}: params.${name} cannot be "${value}"`)
    return encodeURIComponent(String(value))
  })
  const asked = new URLSearchParams(
    Object.entries(query).flatMap(([name, value]) =>
      value === undefined || value === null ? [] : [[name, String(value)] as [string, string]]
    )
  )
  return asked.size === 0 ? filled : `${filled}?${asked.toString()}`
}
