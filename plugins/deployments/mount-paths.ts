import { type Mounted, mountPathFault, mountsCollide } from 'busbar/api/containers'
import { askContribution, type Contributions, type Database, type Tx } from 'busbar/sdk'
import type { MountPathSource, MountPaths } from './api.js'
import { problems } from './problems.js'

interface MountPathsParts {
  readonly db: Database
  readonly sources: Contributions<MountPathSource>
}

/** They read a table, in a transaction that others wait for. */
const askMs = 10_000

/** Which paths of an application's containers are taken, whichever plugin has taken them. */
export class MountPathClaims implements MountPaths {
  constructor(private readonly parts: MountPathsParts) {}

  async claim(applicationId: string, wanted: Mounted, tx: Tx): Promise<void> {
    const fault = mountPathFault(wanted)
    if (fault !== undefined) throw problems.badMountPath({ path: wanted.path.slice(0, 100), fault })
    const { db, sources } = this.parts
    await db.sql(
      "select pg_advisory_xact_lock(hashtextextended('deployments.mountPaths/' || :applicationId, 0))",
      { applicationId },
      tx
    )
    // One after another: a transaction has one connection.
    for (const { plugin, value } of sources.entries()) {
      const what = `the mount paths of the plugin "${plugin}"`
      const mounts = await askContribution(async () => await value.mountsOf(applicationId, tx), {
        ms: askMs,
        what
      })
      const { kind, path } = mounts.find(mount => mountsCollide(mount, wanted)) ?? {}
      if (kind !== undefined && path !== undefined)
        throw problems.mountPathTaken({ kind, path, wanted: wanted.path })
    }
  }
}
