import type { ContainerState, Owner } from 'busbar/api/containers'
import { askNow, type Contributions, isUuid, type Log } from 'busbar/sdk'
import type { LogSourceKind } from '../api.js'
import type { SeenContainer } from './collect-store.js'

/** For whom a container writes; undefined where its output is nobody's, or not kept. */
export function seenContainer(
  { id, owner }: Pick<ContainerState, 'id' | 'owner'>,
  kinds: Contributions<LogSourceKind>,
  log: Log
): SeenContainer | undefined {
  for (const entry of kinds.entries()) {
    const sourceId = sourceOf(entry, owner, log)
    if (sourceId !== undefined)
      return { containerId: id, deploymentId: owner.deploymentId, sourceId, sourceType: entry.key }
  }
  return undefined
}

function sourceOf(
  entry: ReturnType<Contributions<LogSourceKind>['entries']>[number],
  owner: Owner,
  log: Log
): string | undefined {
  const none = ''
  const found = askNow(entry, kind => kind.sourceOf(owner), {
    what: 'the source of a container',
    takes: 'a UUID, or undefined',
    take: answer =>
      answer === undefined ? none : typeof answer === 'string' && isUuid(answer) ? answer : undefined,
    log
  })
  return found === none ? undefined : found
}
