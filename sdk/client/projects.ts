import type { BusbarClient } from './busbar-client.js'
import type { Answer, Body } from './types.js'

/** Something by its `id`, or what was answered of it. */
export type Ref = string | { readonly id: string }
export const idOf = (ref: Ref): string => (typeof ref === 'string' ? ref : ref.id)

type Project = Answer<'GET /api/projects/{projectId}'>

/** What is done with projects most often; everything is in `operations`. */
export class Projects {
  readonly #client: BusbarClient
  constructor(client: BusbarClient) {
    this.#client = client
  }

  /** Makes a project that the caller owns: `create({ name: 'Shop', slug: 'shop' })`. */
  async create(project: Body<'POST /api/projects'>): Promise<Project> {
    return await this.#client.post('/api/projects', { body: project })
  }

  /** The project with this slug, of those that the caller sees; undefined when there is none. */
  async find(slug: string): Promise<Project | undefined> {
    for await (const project of this.#client.each('/api/projects')) if (project.slug === slug) return project
    return undefined
  }

  /** Deletes it with all that lies in it, which goes on after this has resolved. It takes a session (`signIn`): tokens may not. */
  async delete(project: Ref): Promise<void> {
    await this.#client.delete('/api/projects/{projectId}', { params: { projectId: idOf(project) } })
  }
}
