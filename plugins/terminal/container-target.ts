import { applicationTable } from 'busbar/api/applications'
import type { ContainerRuntime } from 'busbar/api/containers'
import type { Database, ProjectId, TableRow } from 'busbar/sdk'
import { problems } from './problems.js'
import type { Shell } from './shells.js'

interface TargetParts {
  readonly db: Database
  readonly runtime: ContainerRuntime
}

/** The container that serves an application, which has to run. */
export async function servingContainer(
  { db, runtime }: TargetParts,
  projectId: ProjectId,
  applicationId: string
): Promise<string> {
  const [application] = await db.sql<TableRow<typeof applicationTable, 'container_deployment_id'>>(
    `select a.container_deployment_id from ${applicationTable.name} a
    where a.id = ? and a.project_id = ? and a.deleting_at is null`,
    [applicationId, projectId]
  )
  if (application === undefined) throw problems.applicationGone({ applicationId })
  const { container_deployment_id: deploymentId } = application
  if (deploymentId === null) throw problems.noContainer()
  const [container] = await runtime.list({ applicationId, deploymentId })
  if (container === undefined) throw problems.noContainer()
  if (container.status !== 'running') throw problems.notRunning({ status: container.status })
  return container.id
}

const missing = 3
const notFoundCodes = [126, 127]
const longestReason = 300

/** Refuses a container in which no such shell can be started, before anybody waits for it. */
export async function requireShell(
  runtime: Pick<ContainerRuntime, 'exec'>,
  containerId: string,
  shell: Shell,
  signal: AbortSignal
): Promise<void> {
  let reason = ''
  const code = await runtime.exec(
    containerId,
    ['sh', '-c', `command -v "$1" > /dev/null || exit ${missing}`, 'sh', shell],
    {
      onLine: ({ text }) => {
        reason = reason === '' ? text.slice(0, longestReason).trim() : reason
      },
      signal
    }
  )
  if (code === 0) return
  if (code === missing) throw problems.shellMissing({ shell })
  throw notFoundCodes.includes(code) && isNotFound(reason)
    ? problems.noShell({ reason })
    : problems.notStarted({ reason: reason || `it ended with ${code}` })
}

const isNotFound = (reason: string): boolean => /not found|no such file|permission denied/i.test(reason)
