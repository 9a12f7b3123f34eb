import type { ContainerRuntime } from 'busbar/api/containers'
import type { AuditLog, Clock, Database } from 'busbar/sdk'
import type { EndReason } from './end-reason.js'
import type { SessionRow, SessionStore } from './session-store.js'

interface EndsParts {
  readonly db: Database
  readonly audit: AuditLog
  readonly clock: Clock
  readonly runtime: ContainerRuntime
  readonly store: SessionStore
}

/** What has to be done about a session that ends, whichever process does it: each step as often as it takes. */
export class SessionEnds {
  constructor(private readonly parts: EndsParts) {}

  /** Writes down that it has ended, and into the audit log once. */
  async record({ id }: SessionRow, reason: EndReason): Promise<void> {
    const { db, audit, clock, store } = this.parts
    await db.transaction(async tx => {
      const now = clock.now()
      const row = await store.end(id, now, tx)
      if (row === undefined) return
      const begunAt = row.opened_at ?? now
      await audit.record(
        {
          action: 'terminal.session.ended',
          resource: 'application',
          resourceId: row.application_id,
          projectId: row.project_id,
          user: { id: row.user_id, email: row.user_email, username: row.user_username },
          details: {
            session_id: row.id,
            shell: row.shell,
            // The clock of the machine may have been set back meanwhile.
            seconds: Math.max(0, Math.round((now.getTime() - begunAt.getTime()) / 1000)),
            reason
          },
          ip: row.ip_address
        },
        tx
      )
    })
  }

  /** Ends what may still run of one that is recorded, and forgets it. */
  async clear({
    id,
    container_id: containerId,
    terminal_id: terminalId,
    opened_at
  }: SessionRow): Promise<void> {
    const { runtime, store } = this.parts
    if (opened_at !== null) await runtime.endTerminal(containerId, terminalId)
    await store.remove(id)
  }
}
