import { definePlugin } from 'busbar/sdk'
import { type RolloutBoundary, rolloutHooks } from '../api.js'

type Act = () => Promise<void>

/** A plugin that does something once, at one boundary between two steps, while the deploy waits there. */
interface BoundaryHook {
  /** For `createTestKernel`. */
  readonly inline: {
    readonly manifest: { readonly id: string; readonly requires: Record<string, string> }
    readonly definition: ReturnType<typeof definePlugin>
  }
  /** Acts at the next deploy that comes to `boundary`; resolves when that is done. */
  at(boundary: RolloutBoundary, act: Act): Promise<void>
}

export function createBoundaryHook(): BoundaryHook {
  let next: { readonly boundary: RolloutBoundary; readonly act: Act } | undefined
  const definition = definePlugin({
    id: 'boundary-hook',
    contributes(contribute) {
      contribute(rolloutHooks, 'boundary-hook', {
        async at(reached) {
          const here = next
          if (reached !== here?.boundary) return
          next = undefined
          await here.act()
        }
      })
    }
  })
  return {
    inline: { manifest: { id: 'boundary-hook', requires: { deployments: '^0.1.0' } }, definition },
    at: async (boundary, act) => {
      await new Promise<void>(resolve => {
        next = {
          boundary,
          act: async () => {
            await act()
            resolve()
          }
        }
      })
    }
  }
}
