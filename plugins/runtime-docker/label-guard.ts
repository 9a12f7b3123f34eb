import type { ContainerCaps } from 'busbar/api/containers'
import type Docker from 'dockerode'
import type { EngineClient } from './engine-client.js'
import { isMadeByPlatform } from './identity.js'
import { asReadable, jsonLines } from './output-lines.js'

/** See `ContainerRuntime.capLabelled`. */
export async function guardLabelled(
  engine: EngineClient,
  label: string,
  caps: ContainerCaps,
  { signal, onRefusal }: { readonly signal: AbortSignal; readonly onRefusal: (reason: string) => void }
): Promise<void> {
  const filters = { type: ['container' as const], event: ['create'], label: [label] }
  const task = 'send its events'
  const events = await engine.call(
    task,
    async docker => asReadable(await docker.getEvents({ filters, abortSignal: signal })),
    { patient: true }
  )
  const refuse = (error: unknown): void => {
    if (!signal.aborted) onRefusal(error instanceof Error ? error.message : String(error))
  }
  const follow = async (): Promise<void> => {
    for await (const { Actor: actor } of engine.reading(task, jsonLines(events))) {
      const id = typeof actor === 'object' && actor !== null && 'ID' in actor ? actor.ID : undefined
      if (typeof id === 'string') void cap(engine, id, caps).catch(refuse)
    }
    throw new Error('the engine tells no more of its containers')
  }
  follow().catch(refuse)
}

/** Swap is the difference between the two of memory: none. */
export const capOptions = ({
  memoryBytes,
  cpus,
  processes
}: ContainerCaps): Required<Pick<Docker.HostConfig, 'Memory' | 'MemorySwap' | 'NanoCpus' | 'PidsLimit'>> => ({
  Memory: memoryBytes,
  MemorySwap: memoryBytes,
  NanoCpus: Math.round(cpus * 1e9),
  PidsLimit: processes
})

async function cap(engine: EngineClient, id: string, caps: ContainerCaps): Promise<void> {
  await engine.call(
    'limit a container of a build',
    async docker => {
      const container = docker.getContainer(id)
      // A container has the labels of its image too: an application's may carry this one, and what is to be capped any other.
      if (isMadeByPlatform((await container.inspect()).HostConfig)) return
      await container.update(capOptions(caps))
      // One that has ended already needs none.
    },
    { absent: [404, 409] }
  )
}
