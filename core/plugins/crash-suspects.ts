/** `starting`: its code is being loaded or started; `started`: that was less than a minute ago. */
export type Phase = 'starting' | 'started'

interface Suspicion {
  readonly quarantined: ReadonlyMap<string, string>
  /** Plugins that are quarantined if they are marked at the next crash too. */
  readonly suspects: ReadonlySet<string>
}

/**
 * Which plugins crashed processes, by what was marked at the crash. The only one marked, while it was starting, did.
 * Where there are more, or it had started already, it may have been any of them, or a machine that was switched off:
 * of those that were marked at the crash before too, the one that was starting is kept off, and all of them where none
 * or several were.
 */
export function suspect(
  crashes: ReadonlyArray<ReadonlyMap<string, Phase>>,
  before: ReadonlySet<string>
): Suspicion {
  if (crashes.length === 0) return { quarantined: new Map(), suspects: before }
  const quarantined = new Map<string, string>()
  const suspects = new Set<string>()
  for (const marks of crashes) {
    const starting = [...marks].filter(([, phase]) => phase === 'starting').map(([plugin]) => plugin)
    const [only] = starting
    const isCertain = only !== undefined && starting.length === 1 && (marks.size === 1 || before.has(only))
    for (const plugin of marks.keys()) {
      if (isCertain && plugin === only)
        quarantined.set(plugin, 'the process died while this plugin was starting; enable it to try again')
      else if (!isCertain && before.has(plugin))
        quarantined.set(
          plugin,
          'the process died twice in a row while this plugin was starting or within a minute after; enable it to try again'
        )
      else suspects.add(plugin)
    }
  }
  return { quarantined, suspects }
}
