import { definePlugin } from 'busbar/sdk'
import { type RolloutBoundary, rolloutHooks } from '../api.js'

type Act = () => Promise<void>

/** A plugin that does something once, at one boundary between two steps, while the deploy waits there. */
interface Halt {
  /** For `createTestKernel`. */
  readonly inline: {
    readonly manifest: { readonly id: string; readonly requires: Record<string, string> }
    readonly definition: ReturnType<typeof definePlugin>
  }
  /** Acts at the next deploy that comes to `boundary`; resolves when that is done. */
  at(boundary: RolloutBoundary, act: Act): Promise<void>
}

export function createHalt(): Halt {
  let next: { readonly boundary: RolloutBoundary; readonly act: Act } | undefined
  const definition = definePlugin({
    id: 'halt',
    contributes(contribute) {
      contribute(rolloutHooks, 'halt', {
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
    inline: { manifest: { id: 'halt', requires: { deployments: '^0.1.0' } }, definition },
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
