import { definePlugin } from 'busbar/sdk'
import { identityContributions, identityServices, needs, startIdentity } from './identity.js'
import { createAccounts } from './migrations/001-create-accounts.js'
import { createTwoFactor } from './migrations/002-create-two-factor.js'
import { createInvitations } from './migrations/003-create-invitations.js'
import { notifications } from './notifications.js'
import { settings } from './settings.js'

export default definePlugin({
  id: 'identity',
  needs,
  config: settings,
  migrations: [createAccounts, createTwoFactor, createInvitations],
  start: startIdentity,
  notifications,
  provides: identityServices,
  contributes: identityContributions
})
