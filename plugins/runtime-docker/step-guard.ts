import type Docker from 'dockerode'
import type { EngineClient } from './engine-client.js'
import { instanceLabel } from './labels.js'
import { asReadable, jsonLines } from './output-lines.js'

/** By these caps, which no Dockerfile can change, the containers of a build are known from all others. */
export interface StepCaps {
  readonly memory: number
  readonly memswap: number
  readonly cpuperiod: number
  readonly cpuquota: number
}

/**
 * Caps the processes of every step of a build, so that one that forks for ever cannot take those of the
 * machine. The engine's builder has no option for it, so each container that it makes is given the cap at once:
 * most often before its program begins, else while it runs. The engine's events tell of them, for the output
 * of a build can be forged. Ends with `signal`.
 */
export async function guardSteps (
  engine: EngineClient,
  { caps, processes, signal, onRefusal }: { readonly caps: StepCaps, readonly processes: number, readonly signal: AbortSignal, readonly onRefusal: (reason: string) => void }
): Promise<void> {
  const filters = { type: ['container' as const], event: ['create'] }
  const events = await engine.call('send its events', async docker => asReadable(await docker.getEvents({ filters, abortSignal: signal })), { patient: true })
  const follow = async (): Promise<void> => {
    for await (const { Actor: actor } of jsonLines(events)) {
      const id = typeof actor === 'object' && actor !== null && 'ID' in actor ? actor.ID : undefined
      if (typeof id === 'string') void cap(engine, id, caps, processes).catch(refuse)
    }
    throw new Error('the engine tells no more of its containers')
  }
  const refuse = (error: unknown): void => { if (!signal.aborted) onRefusal(error instanceof Error ? error.message : String(error)) }
  follow().catch(refuse)
}

async function cap (engine: EngineClient, id: string, caps: StepCaps, processes: number): Promise<void> {
  await engine.call('limit the processes of a build', async docker => {
    const container = docker.getContainer(id)
    if (isStep(await container.inspect(), caps)) await container.update({ PidsLimit: processes })
    // A step that has ended already needs none.
  }, { absent: [404, 409] })
}

function isStep ({ Config, HostConfig }: Docker.ContainerInspectInfo, caps: StepCaps): boolean {
  const isApplication = (Config.Labels as Record<string, string> | null)?.[instanceLabel] !== undefined
  return !isApplication && HostConfig.Memory === caps.memory && HostConfig.MemorySwap === caps.memswap &&
    HostConfig.CpuPeriod === caps.cpuperiod && HostConfig.CpuQuota === caps.cpuquota
}
