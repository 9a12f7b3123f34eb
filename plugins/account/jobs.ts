import type { JobDeclarer } from 'busbar/sdk'
import type { AccountService } from './account-service.js'
import { recoveryJob, type RecoveryPayload } from './password-recovery.js'

export function jobs (job: JobDeclarer<AccountService>) {
  job<RecoveryPayload>({
    name: recoveryJob,
    timeoutMs: 60_000,
    run: async (payload, _, { recovery }) => { await recovery.sendLink(payload) }
  })
}
