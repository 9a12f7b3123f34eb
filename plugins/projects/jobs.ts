import type { JobDeclarer } from 'busbar/sdk'
import type { Projects } from './index.js'
import { teardownJob, type TeardownPayload } from './project-removal.js'

export function jobs (job: JobDeclarer<Projects>) {
  job<TeardownPayload>({
    name: teardownJob,
    timeoutMs: 15 * 60_000,
    run: async (payload, { signal }, { removal }) => { await removal.run(payload, signal) }
  })
}
