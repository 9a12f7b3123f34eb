import type { Owner } from 'busbar/api/containers'
import type Docker from 'dockerode'
import type { ContainerOwners } from '../container-owners.js'
import type { EngineClient } from '../engine-client.js'
import { instanceLabel, isAmong, ownerFilter } from '../labels.js'
import { isAnonymous } from '../volumes.js'
import type { CountedPlaces } from './container-file-use.js'

interface PlacesParts {
  readonly engine: EngineClient
  readonly instanceId: string
  readonly owners: ContainerOwners
}

/** Of the containers of this installation that belong to every given id. */
export async function containerPlaces(
  { engine, instanceId, owners }: PlacesParts,
  owner: Owner
): Promise<readonly CountedPlaces[]> {
  const label = [`${instanceLabel}=${instanceId}`, ...ownerFilter(owner)]
  const found = await engine.call(
    'list containers',
    async docker => await docker.listContainers({ all: true, filters: { label } })
  )
  const places: CountedPlaces[] = []
  for (const { Id: id } of found) {
    const own = await owners.of(id)
    if (own === undefined || !isAmong(owner, own)) continue
    const one = await engine.call(
      'inspect a container',
      async docker => await docker.getContainer(id).inspect(),
      { absent: [404] }
    )
    if (one !== undefined) places.push(placesOf(one, own))
  }
  return places
}

/** Where the engine keeps what a container writes; drivers that keep it elsewhere than in its folder do not tell. */
export function placesOf(
  { Id: id, State, GraphDriver, Mounts }: Docker.ContainerInspectInfo,
  owner: Owner
): CountedPlaces {
  const volumes = (Mounts ?? []).filter(({ Name: name = '' }) => isAnonymous(name))
  const folders = [...topFolder({ GraphDriver }), ...volumes.map(({ Source }) => Source)]
  return { id, owner, isRunning: State.Running, folders }
}

/** Of a container or an image, what is in none of those below it. */
export function topFolder({
  GraphDriver
}: Pick<Docker.ContainerInspectInfo, 'GraphDriver'>): readonly string[] {
  const { UpperDir: own } = (GraphDriver?.Data ?? {}) as { readonly UpperDir?: string }
  return own === undefined ? [] : [own]
}
