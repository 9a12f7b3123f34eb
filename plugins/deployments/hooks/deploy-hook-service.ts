import { createHash, randomBytes } from 'node:crypto'
import type { ApplicationRegistry } from 'busbar/api/applications'
import { type Clock, type Database, isProblem, type Secrets } from 'busbar/sdk'
import type { DeploymentService } from '../deployment-service.js'
import { problems } from '../problems.js'
import type { DeployHookStore } from './deploy-hook-store.js'

/** What a person with a session is shown. */
interface DeployHook {
  readonly enabled: true
  readonly path: string
  readonly token: string
}

interface DeployHookParts {
  readonly db: Database
  readonly hooks: DeployHookStore
  readonly service: DeploymentService
  readonly registry: ApplicationRegistry
  readonly secrets: Secrets
  readonly clock: Clock
}

const base = '/api/webhooks/deploy/'
/** Logs know the shape and leave it out. */
const shape = /^busbar_hook_[\w-]{43}$/

/** Deploys by a URL that is a secret itself. */
export class DeployHookService {
  readonly #parts: DeployHookParts
  constructor(parts: DeployHookParts) {
    this.#parts = parts
  }

  /** A new one; the former stops working. */
  async generate(
    projectId: string,
    applicationId: string
  ): Promise<DeployHook & { readonly wasThere: boolean }> {
    const { db, hooks, registry, secrets, clock } = this.#parts
    // The guard remembers owners: an application that is being deleted passes it.
    if ((await registry.deployable(applicationId)) === undefined)
      throw problems.applicationMissing({ applicationId })
    const token = `busbar_hook_${randomBytes(32).toString('base64url')}`
    const wasThere = await db.transaction(async tx => {
      const replaces = await hooks.put(
        {
          application_id: applicationId,
          project_id: projectId,
          token_hash: hashOf(token),
          token: secrets.seal(token, placeOf(applicationId)),
          created_at: clock.now()
        },
        tx
      )
      await registry.setDeployHookEnabled(applicationId, true, tx)
      return replaces
    })
    return { enabled: true, path: base + token, token, wasThere }
  }

  async isEnabled(projectId: string, applicationId: string): Promise<boolean> {
    return (await this.#parts.hooks.find(projectId, applicationId)) !== undefined
  }

  async reveal(projectId: string, applicationId: string): Promise<DeployHook> {
    const { hooks, secrets } = this.#parts
    const row = await hooks.find(projectId, applicationId)
    if (row === undefined) throw problems.noHook()
    const token = secrets.open(row.token, placeOf(applicationId))
    return { enabled: true, path: base + token, token }
  }

  async remove(projectId: string, applicationId: string): Promise<void> {
    const { db, hooks, registry } = this.#parts
    await db.transaction(async tx => {
      await hooks.remove(projectId, applicationId, tx)
      await registry.setDeployHookEnabled(applicationId, false, tx)
    })
  }

  /** Undefined for every token that is not in force. */
  async applicationOf(token: string): Promise<string | undefined> {
    if (!shape.test(token)) return undefined
    return (await this.#parts.hooks.findByHash(hashOf(token)))?.application_id
  }

  /** 404 for every token that is not in force, whatever is wrong with it. */
  async call(token: string): Promise<{ status: 'queued' | 'in_progress'; application_id: string }> {
    const applicationId = await this.applicationOf(token)
    if (applicationId === undefined) throw problems.hookMissing()
    try {
      await this.#parts.service.deploy(applicationId, 'hook')
      return { status: 'queued', application_id: applicationId }
    } catch (error) {
      if (!isProblem(error)) throw error
      if (error.code === 'E_DEPLOYMENT_ACTIVE')
        return { status: 'in_progress', application_id: applicationId }
      if (error.status === 404) throw problems.hookMissing()
      throw error
    }
  }
}

const hashOf = (token: string): string => createHash('sha256').update(token).digest('hex')
const placeOf = (applicationId: string) => ({ table: 'deploy_hook', column: 'token', row: applicationId })
