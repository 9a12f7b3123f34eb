import type { Clock, Database, Events } from 'busbar/sdk'
import { certificateExpired, certificateExpiring } from './api.js'
import type { CertificateStore } from './certificate-store.js'

const dayMs = 86_400_000
/** Who renews by hand needs longer than a machine. */
const warnBeforeMs = 30 * dayMs

interface ExpiryWatchParts {
  readonly store: CertificateStore
  readonly db: Database
  readonly clock: Clock
  readonly events: Events
}

/** Tells of each certificate once that it ends soon, and once that it has ended. */
export class ExpiryWatch {
  constructor(private readonly parts: ExpiryWatchParts) {}

  async warn(): Promise<void> {
    const { store, db, clock, events } = this.parts
    const now = clock.now()
    await db.transaction(async tx => {
      const due = await store.markWarned({ now, soon: new Date(now.getTime() + warnBeforeMs) }, tx)
      const facts = due.map(({ id, name, not_after, warned }) => ({
        warned,
        certificateId: id,
        name,
        notAfter: not_after.toISOString(),
        daysLeft: Math.max(0, Math.floor((not_after.getTime() - now.getTime()) / dayMs))
      }))
      await events.emitEach(
        certificateExpiring,
        facts.filter(({ warned }) => warned === 'expiring').map(({ warned: _, ...fact }) => fact),
        tx
      )
      await events.emitEach(
        certificateExpired,
        facts
          .filter(({ warned }) => warned === 'expired')
          .map(({ certificateId, name, notAfter }) => ({ certificateId, name, notAfter })),
        tx
      )
    })
  }
}
