import type { JobDeclarer, SingletonDeclarer } from 'busbar/sdk'
import { type TeardownPayload, teardownJob } from './application-removal.js'
import type { Applications } from './applications.js'

export function jobs(job: JobDeclarer<Applications>) {
  job<TeardownPayload>({
    name: teardownJob,
    timeoutMs: 15 * 60_000,
    run: async (payload, { signal }, { removal }) => {
      await removal.run(payload, signal)
    }
  })
}

export function singletons(singleton: SingletonDeclarer<Applications>) {
  singleton({
    name: 'status',
    run: async ({ signal }, { follower }) => {
      await follower.run(signal)
    }
  })
}
