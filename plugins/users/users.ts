import { identity } from 'busbar/api/identity'
import { mailer } from 'busbar/api/mail'
import { kernel, optional, type StartContext } from 'busbar/sdk'
import { userRemoval } from './api.js'
import { InvitationService } from './invitation-service.js'
import { UserService } from './user-service.js'

export const needs = {
  identity,
  removal: userRemoval,
  db: kernel.database,
  instance: kernel.instance,
  mailer: optional(mailer)
}

/** The running plugin. */
export interface Users {
  readonly users: UserService
  readonly invitations: InvitationService
}

export function startUsers({ use }: StartContext<typeof needs, unknown>): Users {
  return {
    users: new UserService(use.identity, use.removal),
    invitations: new InvitationService(use)
  }
}
