import { bounded, withTimeLimit } from 'busbar/sdk'
import { callPlugin } from '../frames/fault.js'
import { signalInFrame } from '../frames/frames.js'

/** One part of a removal. */
export interface TeardownStep {
  readonly plugin: string
  run(signal: AbortSignal): Promise<void>
}

/** A call into a plugin. */
interface Ask {
  readonly plugin: string
  /** For the error: `the teardown`. */
  readonly step: string
  readonly signal: AbortSignal
  /** How long it may take; the removal tries again later. */
  readonly ms?: number
}

const stepLimitMs = 5 * 60_000

/** Calls into a plugin, in its name and not for ever. */
export async function askPlugin(
  { plugin, step, signal, ms = stepLimitMs }: Ask,
  work: (signal: AbortSignal) => Promise<void>
): Promise<void> {
  const what = `${step} of the plugin "${plugin}"`
  const reason = (): Error => new Error(`${what} did not end within ${ms / 1000} s`)
  // A signal for this step alone: one that lives as long as the round would keep a listener of each.
  await withTimeLimit({ signal, ms, reason }, async limited => {
    await bounded(
      async () =>
        await callPlugin(plugin, async () => {
          await work(signalInFrame(plugin, limited))
        }),
      { ms, signal: limited, what }
    )
  })
}

/** Steps of plugins that depend on others come first; `order` has each plugin after what it needs. */
export function dependantsFirst<S extends { readonly plugin: string }>(
  steps: readonly S[],
  order: readonly string[]
): S[] {
  const place = new Map(order.map((plugin, at) => [plugin, at]))
  const placeOf = ({ plugin }: S): number => place.get(plugin) ?? order.length
  return [...steps].sort((a, b) => placeOf(b) - placeOf(a))
}

/**
 * Runs all, one after another. One that fails does not keep the others from their work (what they remove may be what it
 * waits for); the first failure is thrown at the end.
 */
export async function runAll(steps: readonly TeardownStep[], signal: AbortSignal): Promise<void> {
  const failures: unknown[] = []
  for (const step of steps) {
    signal.throwIfAborted()
    try {
      await step.run(signal)
    } catch (error) {
      failures.push(error)
    }
  }
  if (failures.length > 0) throw failures[0]
}
