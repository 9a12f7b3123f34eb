import type { LockWait } from './lock-waits.js'

/**
 * Who is behind each wait, instead of who is next: the first of those that wait for a row is before the others without having it,
 * and keeps them waiting as long as it waits itself. Of third-party plugins (`isGuarded`), one that waits is behind a wait all the
 * same where it excludes others from a table only because it waits for that; or where it has what is waited for, and waits for no
 * other such plugin.
 */
export function behindWaits(
  waits: readonly LockWait[],
  isGuarded: (pid: number) => boolean
): readonly LockWait[] {
  const byWaiting = new Map<number, LockWait[]>()
  for (const wait of waits) byWaiting.set(wait.waiting, [...(byWaiting.get(wait.waiting) ?? []), wait])
  const known = new Map<number, readonly LockWait[]>()
  const behind = (pid: number): readonly LockWait[] => {
    const found = known.get(pid)
    if (found !== undefined) return found
    // While it is looked for: those who wait for each other are behind nothing.
    known.set(pid, [])
    const all = (byWaiting.get(pid) ?? []).flatMap(wait => behindOne(wait))
    const result = [...new Map(all.map(wait => [wait.blocker, wait])).values()]
    known.set(pid, result)
    return result
  }
  const behindOne = (wait: LockWait): readonly LockWait[] => {
    const { blocker, lock, isQueued } = wait
    if (lock === 'relation' && isQueued && isGuarded(blocker)) return [wait]
    const others = behind(blocker)
    const hasIt = lock !== 'tuple' && isGuarded(blocker) && !others.some(one => isGuarded(one.blocker))
    return others.length === 0 || hasIt ? [wait] : others
  }
  return waits.flatMap(wait => {
    const { waiting, waitingName, isConnecting, waitingSince, lock, table } = wait
    return behindOne(wait).map(one => ({
      ...one,
      waiting,
      waitingName,
      isConnecting,
      waitingSince,
      lock,
      table: one.table ?? table
    }))
  })
}
