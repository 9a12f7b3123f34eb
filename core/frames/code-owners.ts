import { realpathSync } from 'node:fs'
import { fileURLToPath, pathToFileURL } from 'node:url'
import { stackOf } from './fault.js'

/** The folders of third-party code that has been loaded, each ending in a separator, and whose it is. */
const owners = new Map<string, string>()

/** From now on errors from code in `folder` are attributed to `plugin`. */
export function noteCode(folder: string, plugin: string): void {
  for (const place of placesIn(folder)) owners.set(place, plugin)
}

/** How stacks name what lies in a folder: by the address of a module, in which a space is `%20`, or by the path; and without links. */
function placesIn(folder: string): ReadonlySet<string> {
  const paths = [folder]
  try {
    paths.push(realpathSync(folder))
  } catch {
    /* it is gone */
  }
  return new Set(paths.flatMap(path => [`${path}/`, `${pathToFileURL(path).pathname}/`]))
}

/** Whether code that is not of the release has been loaded into this process. */
export const hasThirdPartyCode = (): boolean => owners.size > 0

const longestStack = 64 * 1024
/** Where the code of this release lies. */
const release = placesIn(fileURLToPath(new URL('../..', import.meta.url)).replace(/\/$/, ''))

const placesOf = (error: Error): string[] =>
  stackOf(error)
    .slice(0, longestStack)
    .split('\n')
    // Not the message, which may speak of any file.
    .filter(line => /^ +at /.test(line))

/** Whether code of the release, or of what it depends on, is on the stack of an error that names no plugin; the SDK is anybody's. */
export const isOfRelease = (error: Error): boolean =>
  placesOf(error).some(line => line.includes('/node_modules/') || isOurs(line))

const isOurs = (line: string): boolean =>
  [...release].some(place => line.includes(place) && !line.includes(`${place}sdk/`))

/** The third-party plugins whose code is on the stack of an error, the one that threw it first. */
export function codeOwners(error: Error): readonly string[] {
  const found = new Set<string>()
  for (const line of placesOf(error)) {
    for (const [folder, plugin] of owners) if (line.includes(folder)) found.add(plugin)
  }
  return [...found]
}
