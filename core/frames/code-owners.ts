/** The folders of third-party code that has been loaded, each ending in a separator, and whose it is. */
const owners = new Map<string, string>()

/** From now on errors from code in `folder` can be told to be of `plugin`. */
export function noteCode(folder: string, plugin: string): void {
  owners.set(`${folder}/`, plugin)
}

/**
 * Whose code an error comes from that belongs to no frame: Node calls some callbacks, those of a `FinalizationRegistry`
 * for one, outside the context in which they were registered.
 */
export function codeOwner(error: Error): string | undefined {
  for (const line of (error.stack ?? '').split('\n')) {
    for (const [folder, plugin] of owners) if (line.includes(folder)) return plugin
  }
  return undefined
}
