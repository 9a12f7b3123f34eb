import type { NotificationDeclarer } from 'busbar/sdk'
import { type DeploymentKind, deploymentFinished } from './api.js'

/** How a title begins. */
const words: Readonly<Record<DeploymentKind, string>> = {
  deploy: 'Deployment',
  build: 'Build',
  reload: 'Reload',
  rebuild: 'Rebuild',
  rollback: 'Rollback'
}
const kinds = Object.keys(words) as DeploymentKind[]

const shared = {
  group: 'Deployments',
  audience: { project: 'projectId' },
  link: '/projects/{projectId}/applications/{applicationId}/deployments'
} as const

export function notifications(notification: NotificationDeclarer): void {
  for (const kind of kinds) {
    notification(deploymentFinished, {
      ...shared,
      type: 'deployment.succeeded',
      label: 'Deployment succeeded',
      description: 'A deployment, build, reload, rebuild or rollback of an application has succeeded.',
      severity: 'ok',
      when: { status: 'success', kind },
      preference: 'deploy_success',
      title: `${words[kind]} of {application} succeeded` as '{application}'
    })
    notification(deploymentFinished, {
      ...shared,
      type: 'deployment.failed',
      label: 'Deployment failed',
      description:
        'A deployment, build, reload, rebuild or rollback of an application has failed. One that was cancelled is not told.',
      severity: 'error',
      when: { status: 'failed', kind, isCancelled: false },
      // Of a deployment that fails while it builds, the other one counts.
      preference: kind === 'build' ? 'build_failures' : 'deploy_failures',
      title: `${words[kind]} of {application} failed`,
      body: '{error}'
    })
  }
}
