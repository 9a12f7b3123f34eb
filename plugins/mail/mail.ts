import {
  type Contributor,
  configChecks,
  type Health,
  kernel,
  type ServiceBinder,
  type StartContext
} from 'busbar/sdk'
import { mailer } from './api.js'
import { MailStore } from './mail-store.js'
import { mailWarnings } from './mail-warnings.js'
import { Outbox } from './outbox.js'
import { type MailSettings, mailSettingsOf, type Settings } from './settings.js'
import { sendBySmtp } from './smtp.js'

export const needs = {
  db: kernel.database,
  jobs: kernel.jobs,
  secrets: kernel.secrets,
  clock: kernel.clock
}

/** The running plugin; `Mail` is what others see of it. */
export interface MailPlugin {
  readonly outbox: Outbox
  readonly settings: MailSettings | undefined
}

export function startMail({ use, config, log, onStop }: StartContext<typeof needs, Settings>): MailPlugin {
  const settings = mailSettingsOf(config)
  if (settings?.login !== undefined) onStop(use.secrets.redact([settings.login.password]))
  return {
    settings,
    outbox: new Outbox({
      ...use,
      log,
      store: new MailStore(use.db),
      smtp: sendBySmtp,
      settings: async () => settings
    })
  }
}

export function mailServices(provide: ServiceBinder, { outbox }: MailPlugin): void {
  // These alone: only the job delivers.
  provide(mailer, {
    isOn: async () => await outbox.isOn(),
    send: async (message, tx) => {
      await outbox.send(message, tx)
    }
  })
}

export function mailContributions(contribute: Contributor, { settings }: MailPlugin): void {
  contribute(configChecks, 'mail', { warnings: async () => mailWarnings(settings) })
}

export function mailHealth({ outbox }: MailPlugin): Health {
  return outbox.health()
}
