import type { ContainerSpec } from 'busbar/api/containers'
import { bounded, type Clock, type Log } from 'busbar/sdk'
import type Docker from 'dockerode'
import { type ContainerAccess, short } from './container-access.js'
import { containerOptions, isNeverRestarted, restartPolicies } from './container-options.js'
import { checkDeclared, declaredSize } from './declared-size.js'
import type { EngineClient } from './engine-client.js'
import type { FileHolders, HeldFiles } from './file-holders.js'
import type { MachineLimits } from './host/machine-limits.js'
import type { OrphanEnder } from './host/orphan-ender.js'
import type { Identity } from './identity.js'
import type { Images } from './images.js'
import { problems } from './problems.js'

interface ContainerLivesParts {
  readonly engine: EngineClient
  readonly identity: Identity
  readonly access: ContainerAccess
  readonly images: Images
  readonly files: Pick<FileHolders, 'around'>
  readonly groups: Pick<MachineLimits['groups'], 'parentOf'>
  readonly orphans: Pick<OrphanEnder, 'end'>
  readonly clock: Pick<Clock, 'now' | 'sleep'>
  readonly log: Log
}

/**
 * Whether the engine refuses a start for what it has left of the container, see `orphansAmong`. The id of the container is in no text
 * that somebody could have given it.
 */
const isOfOrphans = (containerId: string, words: string): boolean =>
  words.includes(`task ${containerId}: already exists`) ||
  words.includes(`/${containerId}: file exists`) ||
  words.trim() === 'id already in use'

/** A request may wait for it. */
const endMs = 60_000
/** It takes note a moment later that they have ended, and clears away what it has kept of them. */
const orphanPauseMs = [0, 200, 400, 800, 1600, 3200] as const

/** Makes containers, starts and stops them, and keeps in the engine which of them should run. */
export class ContainerLives {
  constructor(private readonly parts: ContainerLivesParts) {}

  async create(spec: ContainerSpec): Promise<string> {
    const { owner, files = [] } = spec
    return await this.parts.files.around(owner, files, async held => await this.#create(spec, held))
  }

  async #create(spec: ContainerSpec, files: HeldFiles | undefined): Promise<string> {
    const config = await this.parts.images.config(spec.image)
    if (config !== undefined) checkDeclared(spec.image, declaredSize(config))
    // What serves the machine is not within the limits of all that is deployed there.
    const parentGroup =
      spec.onMachine === undefined ? await this.parts.groups.parentOf(spec.owner.projectId) : undefined
    const imageHealth = (config as { readonly Healthcheck?: Docker.HealthConfig } | undefined)?.Healthcheck
    const around = { imageLabels: config?.Labels, imageHealth, parentGroup, files }
    const { name, ...body } = containerOptions(spec, this.parts.identity, around)
    // dockerode would put all of it into the address too, which the engine writes into its log and of which it takes 1 MiB.
    const options: Docker.ContainerCreateOptions & { readonly _query: object; readonly _body: object } = {
      _query: { name },
      _body: body
    }
    const { id } = await this.parts.engine.call(
      `create the container ${spec.name}`,
      async docker => await docker.createContainer(options),
      {
        // What the image has at the place of a new volume is copied into it before the engine answers.
        ...((spec.volumes ?? []).length > 0 && { patient: true as const }),
        explain: ({ statusCode, words }) => {
          if (statusCode === 404 && /no such image/i.test(words))
            return problems.imageMissing({ image: spec.image })
          if (statusCode === 409 && /already in use/i.test(words))
            return problems.nameTaken({ name: spec.name, reason: words })
          return undefined
        }
      }
    )
    return id
  }

  async start(containerId: string): Promise<void> {
    const seen = await this.parts.access.existing(containerId)
    if (
      !isNeverRestarted(seen.Config) &&
      seen.HostConfig.RestartPolicy?.Name !== restartPolicies.running.Name
    )
      await this.#setRestartPolicy(containerId, 'running')
    if (await this.#isStarted(seen.Id)) return
    const { clock } = this.parts
    await this.#endLeft(seen.Id)
    for (const ms of orphanPauseMs) {
      await clock.sleep(ms)
      if (await this.#isStarted(seen.Id)) return
    }
    throw problems.orphaned({ container: short(containerId) })
  }

  /** False where the engine refuses it for what it has left there when it was killed. */
  async #isStarted(containerId: string): Promise<boolean> {
    const container = short(containerId)
    const refusal = problems.orphaned({ container })
    try {
      await this.parts.engine.call(
        `start the container ${container}`,
        async docker => {
          await docker.getContainer(containerId).start()
        },
        {
          absent: [304],
          patient: true,
          explain: ({ statusCode, words }) => {
            if (statusCode === 404 && /no such container/i.test(words))
              return problems.containerMissing({ container })
            return statusCode === 500 && isOfOrphans(containerId, words) ? refusal : undefined
          }
        }
      )
      return true
    } catch (error) {
      if (error === refusal) return false
      throw error
    }
  }

  /**
   * Before it is removed: of one whose start was cut off by the death of the engine, the program may run on, with its volumes, and be
   * known to nobody then.
   */
  async beforeRemoval({ Id, State, Mounts }: Docker.ContainerInspectInfo): Promise<void> {
    const isUnstarted = State.Status === 'created'
    if (isUnstarted && Mounts.some(mount => mount.Type === 'volume' && mount.RW)) await this.#endLeft(Id)
  }

  async #endLeft(containerId: string): Promise<void> {
    const { orphans, clock, log } = this.parts
    const now = clock.now()
    await bounded(() => orphans.end(new Set([containerId]), now), {
      ms: endMs,
      what: 'to end what a killed engine has left of a container'
    }).catch((error: unknown) => {
      log.warn({ err: error, containerId }, 'what a killed engine has left of a container could not be ended')
    })
  }

  async stop(containerId: string, graceSeconds: number): Promise<void> {
    if ((await this.parts.access.own(containerId)) === undefined) return
    await this.#setRestartPolicy(containerId, 'stopped')
    await this.parts.engine.call(
      `stop the container ${short(containerId)}`,
      async docker => {
        await docker.getContainer(containerId).stop({ t: graceSeconds })
      },
      { absent: [304, 404], patient: true }
    )
  }

  async restart(containerId: string, graceSeconds: number): Promise<void> {
    // The engine would start one that does not run.
    if ((await this.parts.access.own(containerId))?.State.Running !== true) return
    await this.parts.engine.call(
      `restart the container ${short(containerId)}`,
      async docker => {
        await docker.getContainer(containerId).restart({ t: graceSeconds })
      },
      { absent: [404], patient: true }
    )
  }

  async rename(containerId: string, name: string): Promise<void> {
    const seen = await this.parts.access.existing(containerId)
    if (seen.Name === `/${name}`) return
    await this.parts.engine.call(
      `rename the container ${short(containerId)} to ${name}`,
      async docker => {
        await docker.getContainer(containerId).rename({ name })
      },
      {
        explain: ({ statusCode, words }) => {
          if (statusCode === 404) return problems.containerMissing({ container: short(containerId) })
          if (statusCode === 409 && /already in use/i.test(words))
            return problems.nameTaken({ name, reason: words })
          return undefined
        }
      }
    )
  }

  /** See `restartPolicies`. Neither a full disk nor a removal under way keeps a container from being stopped. */
  async #setRestartPolicy(containerId: string, what: keyof typeof restartPolicies): Promise<void> {
    await this.parts.engine
      .call(
        `set the restart policy of the container ${short(containerId)}`,
        async docker => {
          await docker.getContainer(containerId).update({ RestartPolicy: restartPolicies[what] })
        },
        { absent: [404] }
      )
      .catch((error: unknown) => {
        this.parts.log.info({ err: error, containerId }, 'a crash of the engine may undo this start or stop')
      })
  }
}
