import type { JobDeclarer } from 'busbar/sdk'
import type { MailPlugin } from './mail.js'
import { type DeliverPayload, deliverJob, deliveryAttempts } from './outbox.js'

export function jobs(job: JobDeclarer<MailPlugin>) {
  job<DeliverPayload>({
    name: deliverJob,
    attempts: deliveryAttempts,
    timeoutMs: 2 * 60_000,
    run: async (payload, context, { outbox }) => {
      await outbox.deliver(payload, context)
    }
  })
}
