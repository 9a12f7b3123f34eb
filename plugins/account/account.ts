import { type Identity, identity } from 'busbar/api/identity'
import { mailer } from 'busbar/api/mail'
import { kernel, optional, type StartContext } from 'busbar/sdk'
import { AccountService } from './account-service.js'
import { PasswordRecovery } from './password-recovery.js'

export const needs = {
  identity,
  db: kernel.database,
  jobs: kernel.jobs,
  instance: kernel.instance,
  mailer: optional(mailer)
}

/** The running plugin. */
export interface Account {
  readonly account: AccountService
  readonly recovery: PasswordRecovery
  /** For what needs no word of this plugin's own. */
  readonly identity: Identity
}

export function startAccount({ use, log }: StartContext<typeof needs, unknown>): Account {
  return {
    account: new AccountService(use.identity),
    recovery: new PasswordRecovery({ ...use, log }),
    identity: use.identity
  }
}
