import { randomBytes } from 'node:crypto'
import { rm } from 'node:fs/promises'
import { join } from 'node:path'
import { docker, execute } from './commands.js'
import { untilAnswers } from './visitors.js'

/** Builds a checkout, and gives the engine the image under this name. */
type BuildByHand = (name: string, checkout: string) => Promise<unknown>

const withClassicBuilder: BuildByHand = async (name, checkout) =>
  await docker('build', '--quiet', '--tag', name, checkout)

/** What a person does with git and the docker command, and nothing else. */
export class ByHand {
  readonly #name = `bench-${randomBytes(3).toString('hex')}`
  #deploys = 0
  #running: string | undefined

  constructor(
    private readonly repository: string,
    private readonly directory: string,
    private readonly build = withClassicBuilder
  ) {}

  async open(): Promise<void> {
    await docker('network', 'create', this.#name)
  }

  /** Clones, builds, runs, waits for the health check and for the first page of `version`; then removes the old one. */
  async deploy(version: string): Promise<void> {
    const name = `${this.#name}-${++this.#deploys}`
    const checkout = join(this.directory, name)
    await execute('git', ['clone', '--quiet', '--depth', '1', '--branch', 'main', this.repository, checkout])
    await this.build(name, checkout)
    await docker(
      'run',
      '--detach',
      '--init',
      '--name',
      name,
      '--network',
      this.#name,
      '--memory',
      '512m',
      name
    )
    const address = await docker(
      'inspect',
      '--format',
      '{{range .NetworkSettings.Networks}}{{.IPAddress}}{{end}}',
      name
    )
    await untilAnswers(`http://${address}:3000/healthz`, version)
    await untilAnswers(`http://${address}:3000/`, version)
    this.#removeContainers = async () => {
      await rm(checkout, { recursive: true })
      if (this.#running !== undefined) await docker('rm', '--force', this.#running)
      this.#running = name
    }
  }

  #removeContainers: () => Promise<void> = async () => {}

  /** Not part of the time: the platform does it when the new version serves, too. */
  async removeContainers(): Promise<void> {
    await this.#removeContainers()
  }

  async close(): Promise<void> {
    if (this.#running !== undefined) await docker('rm', '--force', this.#running)
    await docker('network', 'rm', this.#name)
    const images = await docker('image', 'ls', '--quiet', '--filter', `reference=${this.#name}-*`)
    if (images !== '') await docker('image', 'rm', '--force', ...new Set(images.split('\n')))
  }
}
