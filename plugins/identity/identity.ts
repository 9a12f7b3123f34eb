import {
  access,
  type Contributor,
  type CredentialSource,
  kernel,
  type ServiceBinder,
  type StartContext
} from 'busbar/sdk'
import { accountsOf } from './accounts.js'
import { type Identity, identity } from './api.js'
import { CredentialStore } from './credential-store.js'
import { InstanceStore } from './instance-store.js'
import { sessionPolicyOf } from './policy.js'
import type { Settings } from './settings.js'
import { TokenUseStore } from './tokens/token-use-store.js'
import { TokenUses } from './tokens/token-uses.js'
import { SetupAccess } from './users/setup-access.js'
import { setupPolicyOf } from './users/setup-policy.js'
import { UserStore } from './users/user-store.js'

export const needs = {
  db: kernel.database,
  events: kernel.events,
  secrets: kernel.secrets,
  clock: kernel.clock,
  credentials: kernel.credentials,
  instance: kernel.instance
}

/** The running plugin; `Identity` is what others see of it. */
interface IdentityPlugin {
  readonly accounts: Identity
  /** The guard's look-ups and notifications. */
  readonly credentials: CredentialSource
}

export async function startIdentity({
  use,
  config,
  log,
  onStop
}: StartContext<typeof needs, Settings>): Promise<IdentityPlugin> {
  const { db, clock, instance } = use
  const uses = new TokenUses({ store: new TokenUseStore(db), clock, log })
  onStop(() => {
    uses.close()
  })
  // What the guard remembers was found under the settings before these.
  await use.credentials.forget('all', '')
  const setup = new SetupAccess({
    users: new UserStore(db),
    instance: new InstanceStore(db),
    policy: setupPolicyOf(config.setup_code, instance)
  })
  await setup.announce(log)
  const store = new CredentialStore(db, config.two_factor)
  return {
    accounts: accountsOf({ ...use, setup, policy: sessionPolicyOf(config) }),
    credentials: {
      find: (kind, digest) => store.find(kind, digest),
      current: caller => store.current(caller),
      used: (caller, at, recent) => store.used(caller, at, recent),
      admitted: (caller, operation, projectId) => {
        uses.admitted(caller, operation, projectId)
      }
    }
  }
}

export function identityServices(provide: ServiceBinder, { accounts }: IdentityPlugin): void {
  provide(identity, accounts)
}

export function identityContributions(contribute: Contributor, { credentials }: IdentityPlugin): void {
  contribute(access.credentials, 'identity', credentials)
}
