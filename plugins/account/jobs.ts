import type { JobDeclarer } from 'busbar/sdk'
import type { Account } from './account.js'
import { type RecoveryPayload, recoveryJob } from './password-recovery.js'

export function jobs(job: JobDeclarer<Account>) {
  job<RecoveryPayload>({
    name: recoveryJob,
    timeoutMs: 60_000,
    run: async (payload, _, { recovery }) => {
      await recovery.sendLink(payload)
    }
  })
}
