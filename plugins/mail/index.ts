import { definePlugin, kernel } from 'busbar/sdk'
import { mailPost } from './api.js'
import { readMailSettings } from './mail-settings.js'
import { createMailStore } from './mail-store.js'
import { m001 } from './migrations/001-create-message.js'
import { deliverJob, deliveryAttempts, PostOffice, type DeliverPayload } from './post-office.js'
import { sendBySmtp } from './smtp.js'

export default definePlugin({
  id: 'mail',
  needs: {
    database: kernel.database,
    jobs: kernel.jobs,
    secrets: kernel.secrets,
    clock: kernel.clock,
    instance: kernel.instance
  },
  migrations: [m001],
  start ({ use, log, onStop }) {
    const settings = readMailSettings(use.instance.environment)
    if (settings?.login !== undefined) onStop(use.secrets.redact([settings.login.password]))
    return new PostOffice({ ...use, log, store: createMailStore(use.database), smtp: sendBySmtp, settings: async () => settings })
  },
  provides (provide, post) {
    provide(mailPost, post)
  },
  jobs (job) {
    job<DeliverPayload>({
      name: deliverJob,
      attempts: deliveryAttempts,
      timeoutMs: 2 * 60_000,
      run: async (payload, context, post) => { await post.deliver(payload, context) }
    })
  },
  health: post => post.health()
})
