import type { NotificationDeclarer } from 'busbar/sdk'
import { invitationAccepted, newSignIn } from './api.js'

const group = 'Accounts'

export function notifications(notification: NotificationDeclarer): void {
  notification(newSignIn, {
    type: 'account.new_sign_in',
    label: 'New sign-in',
    description:
      'Somebody has signed in to the account by a device that has not signed in before, at a new address.',
    group,
    severity: 'warn',
    audience: { user: 'userId' },
    title: 'New sign-in from {address}',
    body: 'It was made with {client}. If it was not you, change your password, which ends all other sessions.'
  })
  notification(invitationAccepted, {
    type: 'account.invitation_accepted',
    label: 'Invitation accepted',
    description: 'Somebody whom an administrator has invited has become a user; that administrator is told.',
    group,
    severity: 'ok',
    audience: { user: 'invitedByUserId' },
    title: '{email} has accepted your invitation',
    body: 'There is a new user with the role {role}.'
  })
}
