import type { Database, Tx } from 'busbar/sdk'

/**
 * An advisory lock for all processes, until the transaction ends. Others hold it while they decide, and whoever waits has nothing
 * else to do: the usual limit, which is for locks that nobody expects, would make a deployment fail of it.
 */
export async function waitForTurn(
  db: Database,
  name: 'deployments.build-queue' | 'deployments.turns',
  tx: Tx
): Promise<void> {
  await db.sql(
    `set local lock_timeout = '1min';
     select pg_advisory_xact_lock(hashtextextended('${name}', 0));
     set local lock_timeout = default`,
    undefined,
    tx
  )
}
