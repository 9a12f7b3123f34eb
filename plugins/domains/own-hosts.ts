import type { Database } from 'busbar/sdk'
import { isPlatformHost, type PlatformNames } from './hostname.js'
import { ownHostCandidates } from './own-host.js'
import type { Routing } from './routing.js'
import type { RoutingStore } from './routing-store.js'

interface OwnHostsParts {
  readonly db: Database
  readonly store: RoutingStore
  readonly names: PlatformNames
  readonly routing: Routing
  readonly holdNames: (tx: Parameters<RoutingStore['takeOwnHost']>[2]) => Promise<void>
}

/** The name below `.localhost` that each application gets with its first deploy, and keeps. */
export class OwnHosts {
  constructor(private readonly parts: OwnHostsParts) {}

  async give(applicationId: string): Promise<void> {
    const { db, store, names: own, routing, holdNames } = this.parts
    if ((await store.ownHostOf(applicationId)) !== undefined) return
    const application = await store.application(applicationId)
    if (application === undefined) return
    const names = ownHostCandidates(application).filter(name => !isPlatformHost(name, own))
    const isGiven = await db.transaction(async tx => {
      await holdNames(tx)
      for (const name of names) if (await store.takeOwnHost(name, application, tx)) return true
      return false
    })
    if (!isGiven) return
    await routing.changed()
    await routing.refresh()
  }
}
