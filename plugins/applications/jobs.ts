import type { SingletonDeclarer } from 'busbar/sdk'
import type { Applications } from './applications.js'

export function singletons(singleton: SingletonDeclarer<Applications>) {
  singleton({
    name: 'status',
    run: async ({ signal }, { follower }) => {
      await follower.run(signal)
    }
  })
}
