/** What `Error.prepareStackTrace` may be set to. */
type Format = (error: Error, sites: NodeJS.CallSite[]) => unknown

/**
 * Libraries set `Error.prepareStackTrace` for a moment, to see who calls them, and some leave it behind. It formats the stack of
 * every error of the process, so one that throws would have each of them throw where its stack is read.
 */
export function keepStacksReadable(): void {
  const found = Object.getOwnPropertyDescriptor(Error, 'prepareStackTrace')
  if (found?.get !== undefined) return
  /** Each is wrapped once: who reads it, and sets it again later, sets the same. */
  const kept = new WeakMap<Format, Format>()
  let current: unknown = found?.value
  const set = (wanted: unknown): void => {
    current = typeof wanted === 'function' ? keptOf(wanted as Format, kept) : wanted
  }
  set(current)
  Object.defineProperty(Error, 'prepareStackTrace', { get: () => current, set, configurable: true })
}

function keptOf(format: Format, kept: WeakMap<Format, Format>): Format {
  const known = kept.get(format)
  if (known !== undefined) return known
  const safe: Format = (error, sites) => {
    try {
      return format(error, sites)
    } catch {
      return [headOf(error), ...sites.map(site => `    at ${String(site)}`)].join('\n')
    }
  }
  kept.set(format, safe)
  kept.set(safe, safe)
  return safe
}

function headOf(error: Error): string {
  try {
    return Error.prototype.toString.call(error)
  } catch {
    return 'Error'
  }
}
