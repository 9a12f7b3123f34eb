import type { SingletonDeclarer } from 'busbar/sdk'
import type { Terminal } from './terminal.js'

export function singletons(singleton: SingletonDeclarer<Terminal>) {
  singleton({
    name: 'leftovers',
    run: async ({ signal }, { leftovers }) => {
      await leftovers.run(signal)
    }
  })
}
