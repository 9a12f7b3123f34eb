import type { ProjectDirectory } from 'busbar/api/projects'
import type { Bus, Clock, Database, Tx } from 'busbar/sdk'
import type { ApplicationRegistry, ApplicationSource, DeployableApplication } from './api.js'
import { statusAfterCheck } from './container-status.js'
import type { DeployableRow, DeployStore } from './deploy-store.js'
import { healthCheckOf } from './health-check.js'
import type { SealedFields } from './sealed-fields.js'
import { wordsOf } from './start-command.js'
import type { StatusBoard } from './status-board.js'
import { lookAgain } from './status-follower.js'

interface ApplicationRegistryParts {
  readonly deploys: DeployStore
  readonly board: StatusBoard
  readonly sealed: SealedFields
  readonly projects: ProjectDirectory
  readonly db: Database
  readonly bus: Bus
  readonly clock: Clock
}

/** What other plugins read and write of applications. */
export class ApplicationRegistryService implements ApplicationRegistry {
  constructor(private readonly parts: ApplicationRegistryParts) {}

  async deployable(id: string): Promise<DeployableApplication | undefined> {
    const { deploys, sealed } = this.parts
    const row = await deploys.deployable(id)
    return row === undefined ? undefined : deployableOf(row, sealed)
  }

  async recordDeployed(
    ...[id, deploy, tx]: Parameters<ApplicationRegistry['recordDeployed']>
  ): Promise<void> {
    const { deploys, board, projects, db, bus } = this.parts
    const before = await deploys.recordDeployed(id, deploy, tx)
    if (before === undefined) return
    await projects.recordActivity(before.project_id, deploy.finishedAt, tx)
    if (before.was !== 'running')
      db.afterCommit(tx, () => {
        board.announce(id, 'running')
      })
    // Its container counts from now on: what it did before was not followed.
    await bus.signal(lookAgain, id, tx)
  }

  async setStatus(...[id, status]: Parameters<ApplicationRegistry['setStatus']>): Promise<void> {
    await this.parts.board.set(id, status)
  }

  async followHealth(
    ...[id, deploymentId, health]: Parameters<ApplicationRegistry['followHealth']>
  ): Promise<void> {
    const { deploys, board } = this.parts
    const row = await deploys.followed(id)
    if (row?.container_deployment_id !== deploymentId) return
    const status = statusAfterCheck(row.status, health)
    if (status !== row.status) await board.follow([{ ...row, was: row.status, status }])
  }

  async markConfigChanged(id: string, tx: Tx): Promise<void> {
    const { deploys, clock } = this.parts
    await deploys.markConfigChanged(id, clock.now(), tx)
  }

  async setDeployHookEnabled(id: string, enabled: boolean, tx: Tx): Promise<void> {
    await this.parts.deploys.setDeployHookEnabled(id, enabled, tx)
  }
}

function deployableOf(row: DeployableRow, sealed: SealedFields): DeployableApplication {
  return {
    id: row.id,
    projectId: row.project_id,
    projectSlug: row.project_slug,
    name: row.name,
    slug: row.slug,
    status: row.status,
    containerDeploymentId: row.container_deployment_id,
    source: sourceOf(row, sealed),
    buildType: row.build_type_override ?? row.build_type,
    builderImage: row.builder_image,
    customBuildpacks: JSON.parse(row.custom_buildpacks) as string[],
    containerPort: row.container_port,
    startCommand: row.start_command === null ? null : wordsOf(row.start_command),
    cpuLimit: row.cpu_limit,
    memoryLimit: row.memory_limit,
    healthCheck: healthCheckOf(row),
    containerCaps: row.container_caps,
    readonlyRootfs: row.readonly_rootfs
  }
}

function sourceOf(row: DeployableRow, sealed: SealedFields): ApplicationSource {
  if (row.type === 'image')
    return { type: 'image', image: row.source_image ?? '', ...registryAccount(row, sealed) }
  return {
    type: 'git',
    repo: row.source_repo ?? '',
    branch: row.branch,
    token: row.git_token === null ? null : sealed.open('git_token', row.id, row.git_token),
    ...(row.git_integration_id !== null && { integrationId: row.git_integration_id }),
    rootDirectory: row.root_directory ?? '',
    dockerfilePath: row.dockerfile_path ?? 'Dockerfile',
    ...(row.build_target !== null && { target: row.build_target }),
    ...(row.build_platform !== null && { platform: row.build_platform })
  }
}

function registryAccount(
  { id, registry_username: username, registry_password: password }: DeployableRow,
  sealed: SealedFields
) {
  return username === null || password === null
    ? {}
    : { registry: { username, password: sealed.open('registry_password', id, password) } }
}
