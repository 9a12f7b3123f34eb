import type { RegistryAccounts } from 'busbar/api/registries'
import { isProblem, type OptionalHandle, type SecretScope } from 'busbar/sdk'
import type { RegistryAuth } from './client/registry-reader.js'

/** For whom an image is pulled. */
interface Puller {
  readonly projectId: string
  readonly deploymentId: string
}

/** The accounts of registries that deployments may use: their project's, and the installation's. */
export interface PullAccounts {
  /** Undefined where there is none for the registry of the image. From now on the log of the deployment hides its password. */
  find(puller: Puller, image: string): Promise<Required<RegistryAuth> | undefined>
}

export class DeploymentAccounts implements PullAccounts {
  readonly #logs = new Map<string, Pick<SecretScope, 'redact'>>()

  constructor(private readonly accounts: Pick<OptionalHandle<RegistryAccounts>, 'get'>) {}

  /** What is found for the deployment meanwhile is hidden in its log. */
  async hiding<T>(
    deploymentId: string,
    secrets: Pick<SecretScope, 'redact'>,
    run: () => Promise<T>
  ): Promise<T> {
    this.#logs.set(deploymentId, secrets)
    try {
      return await run()
    } finally {
      this.#logs.delete(deploymentId)
    }
  }

  async find(
    { projectId, deploymentId }: Puller,
    image: string
  ): Promise<Required<RegistryAuth> | undefined> {
    const account = await this.accounts.get()?.find(projectId, image)
    if (account === undefined) return undefined
    const { username, password } = account
    // As it travels to the registry, too.
    const basic = Buffer.from(`${username}:${password}`).toString('base64')
    this.#logs.get(deploymentId)?.redact([password, basic])
    return account
  }
}

/** Codes of an image that is not handed out to who has asked: an account may get it. Some registries say that there is none. */
const refusals: ReadonlySet<string> = new Set([
  'E_REGISTRY_DENIED',
  'E_REGISTRY_CREDENTIALS',
  'E_REGISTRY_LIMIT',
  'E_IMAGE_NOT_FOUND'
])

export const isRefused = (error: unknown): boolean => isProblem(error) && refusals.has(error.code)

/** For the log: as whom an image is pulled. */
export const pullingAs = (image: string, { username, of }: Required<RegistryAuth>): string =>
  `Pulling ${image} as ${username}, the account of ${of === 'project' ? 'this project' : 'the installation'} for its registry`
