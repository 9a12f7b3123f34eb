import { access, definePlugin, kernel } from 'busbar/sdk'
import { identity } from './api.js'
import { createCredentialStore } from './credential-store.js'
import { createIdentity } from './identity.js'
import { m001 } from './migrations/001-create-accounts.js'
import { m002 } from './migrations/002-create-two-factor.js'
import { m003 } from './migrations/003-create-invitations.js'

export default definePlugin({
  id: 'identity',
  needs: {
    database: kernel.database,
    secrets: kernel.secrets,
    clock: kernel.clock,
    credentials: kernel.credentials,
    instance: kernel.instance
  },
  migrations: [m001, m002, m003],
  start: ({ use }) => ({
    identity: createIdentity({ ...use, environment: use.instance.environment }),
    credentialStore: createCredentialStore(use.database)
  }),
  provides (provide, self) {
    provide(identity, self.identity)
  },
  contributes (contribute, { credentialStore }) {
    contribute(access.credentials, 'identity', credentialStore)
  }
})
