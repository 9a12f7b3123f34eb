import type { JobDeclarer } from 'busbar/sdk'
import { type TeardownPayload, teardownJob } from './project-removal.js'
import type { Projects } from './projects.js'

export function jobs(job: JobDeclarer<Projects>) {
  job<TeardownPayload>({
    name: teardownJob,
    timeoutMs: 15 * 60_000,
    run: async (payload, { signal }, { removal }) => {
      await removal.run(payload, signal)
    }
  })
}
