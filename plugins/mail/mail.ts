import { type Health, kernel, type ServiceBinder, type StartContext } from 'busbar/sdk'
import { mailPost } from './api.js'
import { MailStore } from './mail-store.js'
import { PostOffice } from './post-office.js'
import { mailSettingsOf, type Settings } from './settings.js'
import { sendBySmtp } from './smtp.js'

export const needs = {
  db: kernel.database,
  jobs: kernel.jobs,
  secrets: kernel.secrets,
  clock: kernel.clock
}

/** The running plugin; `Mail` is what others see of it. */
export interface MailPlugin {
  readonly post: PostOffice
}

export function startMail({ use, config, log, onStop }: StartContext<typeof needs, Settings>): MailPlugin {
  const settings = mailSettingsOf(config)
  if (settings?.login !== undefined) onStop(use.secrets.redact([settings.login.password]))
  return {
    post: new PostOffice({
      ...use,
      log,
      store: new MailStore(use.db),
      smtp: sendBySmtp,
      settings: async () => settings
    })
  }
}

export function mailServices(provide: ServiceBinder, { post }: MailPlugin): void {
  // These alone: only the job delivers.
  provide(mailPost, {
    isOn: async () => await post.isOn(),
    send: async (message, tx) => {
      await post.send(message, tx)
    }
  })
}

export function mailHealth({ post }: MailPlugin): Health {
  return post.health()
}
