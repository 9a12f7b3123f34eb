import { setTimeout as sleep } from 'node:timers/promises'
import type { TestClient } from 'busbar/sdk/testing'
import { docker } from './commands.js'
import { expect } from './expect.js'
import type { Platform } from './platform.js'
import { untilAnswers } from './visitors.js'

interface Deployment {
  readonly id: string
  readonly status: string
  readonly finished_at: string | null
  readonly error_message: string | null
}

const pollMs = 200
const pollBuildMs = 100
const limitMs = 120_000

/** An application of the platform, and how it is deployed through its API. */
export class Deployer {
  #url: string | undefined

  private constructor(
    private readonly client: TestClient,
    readonly path: string,
    readonly id: string
  ) {}

  static async create(client: TestClient, projectId: string, repository: string): Promise<Deployer> {
    const path = `/api/projects/${projectId}/applications`
    const { id } = expect(
      await client.post(path, {
        name: 'Live',
        type: 'git',
        build_type: 'dockerfile',
        source_repo: repository,
        branch: 'main',
        health_check_path: '/healthz'
      }),
      201
    ) as { id: string }
    return new Deployer(client, `${path}/${id}`, id)
  }

  /** Where visitors go; known after the first deploy. */
  get url(): string {
    return this.#url ?? ''
  }

  async start(): Promise<string> {
    return (expect(await this.client.post(`${this.path}/deploy`), 202) as Deployment).id
  }

  /** Until the record says that it has ended well. */
  async finished(id: string, everyMs = pollMs): Promise<void> {
    const end = performance.now() + limitMs
    for (;;) {
      const deployment = expect(await this.client.get(`${this.path}/deployments/${id}`), 200) as Deployment
      if (deployment.finished_at !== null) {
        if (deployment.status !== 'success')
          throw new Error(`the deployment ended as ${deployment.status}: ${deployment.error_message ?? ''}`)
        this.#url ??= (expect(await this.client.get(this.path), 200) as { direct_url: string }).direct_url
        return
      }
      if (performance.now() > end) throw new Error(`the deployment is still ${deployment.status}`)
      await sleep(everyMs)
    }
  }

  async #isBuilding(id: string): Promise<boolean> {
    const { status } = expect(await this.client.get(`${this.path}/deployments/${id}`), 200) as Deployment
    return status === 'pending' || status === 'building'
  }

  /** Until the version before has gone. */
  async clearedAway(): Promise<void> {
    const end = performance.now() + limitMs
    while (
      (
        await docker('container', 'ls', '--all', '--quiet', '--filter', `label=application-id=${this.id}`)
      ).includes('\n')
    ) {
      if (performance.now() > end) throw new Error('the version before is still there')
      await sleep(pollMs)
    }
  }

  /** From the call to the first page of `version`. */
  async deploy(version: string): Promise<string> {
    const id = await this.start()
    // Asking for the page every 10 ms while the version is still being built would slow the build down.
    while (await this.#isBuilding(id)) await sleep(pollBuildMs)
    await untilAnswers(`${this.url}/`, version).catch(async (error: unknown) => {
      throw new Error(
        `${String(error)}; the record: ${JSON.stringify(await this.client.get(`${this.path}/deployments/${id}`))}`
      )
    })
    return id
  }
}

/** Deletes the project, and waits until nothing of it is left on the engine. */
export async function removeProject({ admin, projectId, projectSlug }: Platform): Promise<void> {
  expect(await admin.delete(`/api/projects/${projectId}`), 200)
  const end = performance.now() + limitMs
  while ((await docker('network', 'ls', '--quiet', '--filter', `name=busbar-${projectSlug}`)) !== '') {
    if (performance.now() > end) throw new Error(`the network of the project ${projectSlug} is still there`)
    await sleep(pollMs)
  }
}
