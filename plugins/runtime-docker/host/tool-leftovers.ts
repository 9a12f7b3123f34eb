import { setTimeout as sleep } from 'node:timers/promises'
import type { EngineClient } from '../engine-client.js'
import { imageInstanceLabel } from '../labels.js'

/** Tells the container of host tools and its image from steps of builds. */
export const toolsLabel = 'busbar-system=host-tools'
/** The container ends by itself after this, and is removed then. */
export const lifeSeconds = 30
/** It is started right after it was made. */
const startSeconds = 2

interface Kind {
  readonly purpose: string
  readonly label: string
  readonly lifeSeconds: number
}

export async function removeTools(
  engine: EngineClient,
  container: string,
  { purpose }: Pick<Kind, 'purpose'>
): Promise<void> {
  await engine.call(
    `remove the container ${purpose}`,
    async docker => {
      await docker.getContainer(container).remove({ force: true })
    },
    { absent: [404, 409] }
  )
}

/**
 * What a platform that was killed has left of its host tools: a container that never started ends neither by itself
 * nor is it removed, and an image stays.
 */
export class ToolLeftovers {
  constructor(
    private readonly engine: EngineClient,
    private readonly instanceId: string,
    private readonly kind: Kind
  ) {}

  get #label(): string[] {
    return [`${imageInstanceLabel}=${this.instanceId}`, this.kind.label]
  }

  /** True where some are so young that another process of this installation may be about to start them. */
  async remove(): Promise<boolean> {
    const { lifeSeconds } = this.kind
    const containers = await this.engine.call(
      'list containers',
      async docker => await docker.listContainers({ all: true, filters: { label: this.#label } })
    )
    const now = Date.now() / 1000
    let isYoung = false
    for (const { Id: id, Created: created, State: state } of containers) {
      if (now - created >= (state === 'created' ? startSeconds : lifeSeconds))
        await removeTools(this.engine, id, this.kind)
      else isYoung ||= state === 'created'
    }
    await this.removeImages()
    return isYoung
  }

  async removeImages(): Promise<void> {
    const images = await this.engine.call(
      'list images',
      async docker => await docker.listImages({ filters: JSON.stringify({ label: this.#label }) }),
      { lists: true }
    )
    const now = Date.now() / 1000
    for (const { Id: id, Created: created } of images) {
      if (now - created < this.kind.lifeSeconds) continue
      await this.engine.call(
        'remove an empty image',
        async docker => {
          await docker.getImage(id).remove()
        },
        { absent: [404, 409] }
      )
    }
  }

  /** Those that were too young before. */
  async removeLater(): Promise<void> {
    await sleep(startSeconds * 1000)
    await this.remove()
  }
}
