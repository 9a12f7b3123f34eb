import type { ApplicationRegistry } from 'busbar/api/applications'
import type { Variable } from 'busbar/api/environment'
import type { Clock, Database, Page, ProjectId, Rows } from 'busbar/sdk'
import type { EngineChoice } from '../engines/engine-choice.js'
import { problems } from '../problems.js'
import type { DatabaseService } from '../records/database-service.js'
import type { SealedCredentials } from '../records/sealed-credentials.js'
import type { AttachmentAnswer } from '../schemas.js'
import type { AttachmentStore, AttachmentVariables } from './attachment-store.js'

interface AttachmentParts {
  readonly attachments: AttachmentStore
  readonly databases: DatabaseService
  readonly applications: ApplicationRegistry
  readonly engines: EngineChoice
  readonly sealed: SealedCredentials
  readonly db: Database
  readonly clock: Clock
}

const mostVariables = 50

/** Which applications get the connection of a database, and by which variables. */
export class AttachmentService {
  constructor(private readonly parts: AttachmentParts) {}

  async list(projectId: ProjectId, databaseId: string, page: Page): Promise<Rows<AttachmentAnswer>> {
    await this.parts.databases.row(projectId, databaseId)
    return await this.parts.attachments.list(databaseId, page)
  }

  async attach(
    projectId: ProjectId,
    databaseId: string,
    applicationId: string,
    variables: AttachmentVariables
  ): Promise<{ status: string }> {
    const { attachments, databases, applications, db, clock } = this.parts
    checkNames(variables)
    await databases.row(projectId, databaseId)
    await db.transaction(async tx => {
      if (!(await attachments.set(projectId, databaseId, applicationId, variables, clock.now(), tx)))
        throw problems.applicationGone({ applicationId })
      await applications.markConfigChanged(applicationId, tx)
    })
    return { status: 'attached' }
  }

  async detach(projectId: ProjectId, databaseId: string, applicationId: string): Promise<{ status: string }> {
    const { attachments, databases, applications, db } = this.parts
    await databases.row(projectId, databaseId)
    await db.transaction(async tx => {
      if (!(await attachments.remove(databaseId, applicationId, tx)))
        throw problems.notAttached({ applicationId })
      await applications.markConfigChanged(applicationId, tx)
    })
    return { status: 'detached' }
  }

  /** For containers that are made: of two databases with a variable of one name the one that was attached last counts. */
  async variablesOf(applicationId: string): Promise<readonly Variable[]> {
    const { attachments, engines, sealed } = this.parts
    const found = new Map<string, Variable>()
    for (const { variables, ...row } of await attachments.ofApplication(applicationId)) {
      const engine = await engines.of(row.type)
      const database = sealed.forEngine(row)
      const parts = {
        host: row.slug,
        port: String(row.container_port),
        url: engine.connectionString(database, row.slug) ?? `tcp://${row.slug}:${row.container_port}`,
        ...engine.connectionParts(database)
      }
      for (const [key, part] of Object.entries(variables)) {
        const value = parts[part as keyof typeof parts] ?? ''
        found.set(key, { key, value, isSecret: part === 'url' || part === 'password' })
      }
    }
    return [...found.values()]
  }
}

function checkNames(variables: AttachmentVariables): void {
  const names = Object.keys(variables)
  if (names.length === 0 || names.length > mostVariables)
    throw problems.invalid({ field: 'variables', reason: `must name 1 to ${mostVariables} variables` })
  const bad = names.find(name => !/^[A-Za-z_][A-Za-z0-9_]*$/.test(name))
  if (bad !== undefined)
    throw problems.invalid({
      field: 'variables',
      reason: `must have names of letters, digits and _: ${JSON.stringify(bad)}`
    })
}
