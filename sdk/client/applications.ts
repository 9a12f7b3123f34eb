import type { BusbarClient } from './busbar-client.js'
import { idOf, type Ref } from './projects.js'
import type { Answer, Body } from './types.js'

const path = '/api/projects/{projectId}/applications/{applicationId}'
type Application = Answer<`GET ${typeof path}`>
type Deployment = Answer<`POST ${typeof path}/deploy`>

/** What was answered of an application, or its ids. */
export interface ApplicationRef {
  readonly id: string
  readonly project_id: string
}

/** What is done with applications most often; everything is in `operations`. */
export class Applications {
  readonly #client: BusbarClient
  constructor(client: BusbarClient) {
    this.#client = client
  }

  /**
   * Makes an application in a project. Nothing is deployed yet.
   *
   *     create(project, { name: 'Shop', type: 'git', build_type: 'dockerfile', source_repo: 'https://…/shop.git' })
   *     create(project, { name: 'Cache', type: 'image', build_type: 'image', source_image: 'redis:7' })
   */
  async create(
    project: Ref,
    application: Body<'POST /api/projects/{projectId}/applications'>
  ): Promise<Application> {
    return await this.#client.post('/api/projects/{projectId}/applications', {
      params: { projectId: idOf(project) },
      body: application
    })
  }

  /**
   * Sets its variables to these and no others: `{ LOG_LEVEL: 'info' }`. The next deploy starts the application with them.
   * Those in `secrets` are shown to nobody without asking.
   */
  async setVariables(
    application: ApplicationRef,
    variables: Readonly<Record<string, string>>,
    { secrets = [] }: { readonly secrets?: readonly string[] } = {}
  ): Promise<void> {
    const vars = Object.entries(variables).map(([key, value]) => ({
      key,
      value,
      is_secret: secrets.includes(key)
    }))
    await this.#client.put(`${path}/env`, { params: paramsOf(application), body: { vars } })
  }

  /** Begins to deploy it. `deployments.follow` and `deployments.wait` say how that goes. */
  async deploy(
    application: ApplicationRef,
    options: { readonly idempotencyKey?: string } = {}
  ): Promise<Deployment> {
    return await this.#client.post(`${path}/deploy`, { params: paramsOf(application), ...options })
  }

  /** As it is now: its `status`, and `direct_url` where it answers. */
  async get(application: ApplicationRef): Promise<Application> {
    return await this.#client.get(path, { params: paramsOf(application) })
  }

  /**
   * Stops and deletes it with all that is kept of it, which goes on after this has resolved. It takes a session (`signIn`):
   * tokens may not.
   */
  async delete(application: ApplicationRef): Promise<void> {
    await this.#client.delete(path, { params: paramsOf(application) })
  }
}

const paramsOf = ({ id, project_id }: ApplicationRef) => ({ projectId: project_id, applicationId: id })
