import { fileURLToPath } from 'node:url'

/** A call as a debugger reports it; line and column count from 0. */
export interface Call {
  readonly name: string
  readonly url: string
  readonly line: number
  readonly column: number
}

/** The folder above `core`, where the compiled or the source modules of the platform lie. */
const home = new URL('../../', import.meta.url).href
const mostCalls = 20

/** The calls as an error's stack shows them, innermost first; no values, only places. */
export const stackText = (calls: readonly Call[]): string =>
  calls
    .slice(0, mostCalls)
    .map(
      ({ name, url, line, column }) =>
        `    at ${name === '' ? '<anonymous>' : name} (${placeOf(url)}:${line + 1}:${column + 1})`
    )
    .join('\n')

/** The built-in plugin whose code is the innermost of a plugin's. */
export function pluginIn(calls: readonly Call[]): string | undefined {
  for (const { url } of calls) {
    const id = /^plugins\/([a-z][a-z0-9-]*)\//.exec(placeOf(url))?.[1]
    if (id !== undefined) return id
  }
  return undefined
}

function placeOf(written: string): string {
  // A loader may have added a query.
  const url = written.split('?', 1)[0] ?? ''
  if (url.startsWith(home)) return url.slice(home.length)
  return url.startsWith('file://') ? fileURLToPath(url) : url
}
