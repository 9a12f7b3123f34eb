import type { Clock } from 'busbar/sdk'
import { isUp, type PluginEntry, setState } from './plugin-entry.js'

/** Asks every running plugin how it is. */
export async function healthRound(entries: Iterable<PluginEntry>, clock: Clock): Promise<void> {
  await Promise.all([...entries].map(async entry => await checkHealth(entry, clock)))
}

/** Asks a plugin how it is, and notes the answer unless something else has happened to it meanwhile. */
async function checkHealth(entry: PluginEntry, clock: Clock): Promise<void> {
  const { run } = entry
  if (run === undefined || !isUp(entry.state) || run.options.definition.health === undefined) return
  const health = await run.health()
  if (entry.run !== run || !isUp(entry.state)) return
  // An uncaught error is not undone by a check that does not know of it.
  if (health.status === 'ok' && run.uncaughtError !== undefined)
    setState(entry, 'degraded', run.uncaughtError, clock.now())
  else if (health.status === 'ok') setState(entry, 'running', null, clock.now())
  else setState(entry, 'degraded', health.reason, clock.now())
}
