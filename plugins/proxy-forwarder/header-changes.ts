import type { HeaderChanges } from 'busbar/api/domains'
import type { HeaderBag } from 'busbar/sdk/http1'

/** Applies changes to headers in place, whatever their spelling: taken away first, then set, then added. */
export function changeHeaders(
  headers: HeaderBag,
  { set = {}, add = {}, delete: removed = [] }: HeaderChanges
): void {
  for (const name of removed) take(headers, name)
  for (const [name, values] of Object.entries(set)) {
    take(headers, name)
    headers[name] = [...values]
  }
  for (const [name, values] of Object.entries(add)) headers[name] = [...take(headers, name), ...values]
}

/** Removes all of a name, and answers its values. */
function take(headers: HeaderBag, name: string): readonly string[] {
  const wanted = name.toLowerCase()
  const values: string[] = []
  for (const key of Object.keys(headers)) {
    if (key.toLowerCase() !== wanted) continue
    const value = headers[key]
    values.push(...(Array.isArray(value) ? value : value === undefined ? [] : [value]))
    delete headers[key]
  }
  return values
}
