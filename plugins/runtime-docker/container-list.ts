import type { ContainerState, Owner } from 'busbar/api/containers'
import type { EngineClient } from './engine-client.js'
import { instanceLabel, isAmong, ownerFilter } from './labels.js'

interface ListParts {
  readonly engine: EngineClient
  readonly instanceId: string
  /** Undefined for one that is gone or not this platform's. */
  readonly look: (containerId: string) => Promise<ContainerState | undefined>
}

const inspectedAtOnce = 8

/** The containers that belong to every given id. What a list tells is a claim, so each is looked at. */
export async function listedContainers(
  { engine, instanceId, look }: ListParts,
  owner: Owner
): Promise<readonly ContainerState[]> {
  const label = [`${instanceLabel}=${instanceId}`, ...ownerFilter(owner)]
  const found = await engine.call(
    'list containers',
    async docker => await docker.listContainers({ all: true, filters: { label } })
  )
  const states: ContainerState[] = []
  for (let at = 0; at < found.length; at += inspectedAtOnce) {
    const batch = await Promise.all(
      found.slice(at, at + inspectedAtOnce).map(async ({ Id }) => await look(Id))
    )
    states.push(...batch.filter(state => state !== undefined).filter(state => isAmong(owner, state.owner)))
  }
  return states
}
