import { access, definePlugin, kernel, object, oneOf, Type } from 'busbar/sdk'
import { identity } from './api.js'
import { createCredentialStore } from './credential-store.js'
import { createIdentity } from './identity.js'
import { m001 } from './migrations/001-create-accounts.js'
import { m002 } from './migrations/002-create-two-factor.js'
import { m003 } from './migrations/003-create-invitations.js'
import { twoFactorPolicies } from './policy.js'
import { createTokenUseStore } from './tokens/token-use-store.js'
import { createTokenUses } from './tokens/token-uses.js'

export default definePlugin({
  id: 'identity',
  needs: {
    database: kernel.database,
    secrets: kernel.secrets,
    clock: kernel.clock,
    credentials: kernel.credentials,
    instance: kernel.instance
  },
  config: object({
    two_factor: Type.Unsafe<(typeof twoFactorPolicies)[number]>({
      ...oneOf(twoFactorPolicies), default: 'optional', description: 'Who has to have a second factor: optional (nobody), admins, or everyone'
    })
  }),
  migrations: [m001, m002, m003],
  async start ({ use, config, log, onStop }) {
    const uses = createTokenUses({ store: createTokenUseStore(use.database), clock: use.clock, log })
    onStop(() => { uses.close() })
    // What the guard remembers was found under the settings before these.
    await use.credentials.forget('all', '')
    return {
      identity: createIdentity({ ...use, environment: use.instance.environment }),
      credentialStore: { ...createCredentialStore(use.database, config.two_factor), admitted: uses.admitted }
    }
  },
  provides (provide, self) {
    provide(identity, self.identity)
  },
  contributes (contribute, { credentialStore }) {
    contribute(access.credentials, 'identity', credentialStore)
  }
})
