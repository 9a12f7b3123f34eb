import type { Owner } from 'busbar/api/containers'
import { bounded } from 'busbar/sdk'
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
  for (const { Id: id, State: state } of found) {
    const own = await bounded(async () => await owners.of(id), { ms: inspectMs, what: 'a container' }).catch(
      () => undefined
    )
    if (own === undefined || !isAmong(owner, own)) continue
    const place = await inspected(engine, id, own).catch(
      // The engine keeps one locked while it is busy with it: that must not hide what all others have.
      (): CountedPlaces => ({ id, owner: own, isRunning: state === 'running', folders: [], isUnknown: true })
    )
    if (place !== undefined) places.push(place)
  }
  return places
}

const inspectMs = 2000

async function inspected(engine: EngineClient, id: string, owner: Owner): Promise<CountedPlaces | undefined> {
  const seen = await bounded(
    async () =>
      await engine.call('inspect a container', async docker => await docker.getContainer(id).inspect(), {
        absent: [404]
      }),
    { ms: inspectMs, what: 'a container' }
  )
  return seen === undefined ? undefined : placesOf(seen, owner)
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
