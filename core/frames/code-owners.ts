/** The folders of third-party code that has been loaded, each ending in a separator, and whose it is. */
const owners = new Map<string, string>()

/** From now on errors from code in `folder` can be told to be of `plugin`. */
export function noteCode(folder: string, plugin: string): void {
  owners.set(`${folder}/`, plugin)
}

/** Whether code that is not of the release has been loaded into this process. */
export const hasThirdPartyCode = (): boolean => owners.size > 0

const longestStack = 64 * 1024

/** The third-party plugins whose code is on the stack of an error, the one that threw it first. */
export function codeOwners(error: Error): readonly string[] {
  const found = new Set<string>()
  for (const line of (error.stack ?? '').slice(0, longestStack).split('\n')) {
    // Not the message, which may speak of any file.
    if (!/^ +at /.test(line)) continue
    for (const [folder, plugin] of owners) if (line.includes(folder)) found.add(plugin)
  }
  return [...found]
}
