import { allow, type RouteDeclarer } from 'busbar/sdk'
import { inApplication } from './api.js'
import type { Applications } from './applications.js'
import { stopGraceSeconds } from './container-control.js'
import { application } from './schemas.js'

const one = '/api/projects/:projectId/applications/:applicationId'
const actions = [
  ['start', 'StartApplication', 'Start App'],
  ['stop', 'StopApplication', 'Stop App'],
  ['restart', 'RestartApplication', 'Restart App']
] as const

/** The verbs that act on the container that exists. */
export function actionRoutes(route: RouteDeclarer<Applications>) {
  for (const [action, operationId, summary] of actions) {
    route({
      method: 'POST',
      url: `${one}/${action}`,
      group: 'Application Actions',
      operationId,
      summary,
      access: allow.token('deploy', { project: inApplication }),
      schema: { response: { 200: application } },
      timeoutMs: (stopGraceSeconds + 30) * 1000,
      audit: { action: `${action}_application`, resource: 'application', id: { param: 'applicationId' } },
      handler: async ({ project, params }, { applications, control }) => {
        await control[action](project, params.applicationId)
        return await applications.get(project, params.applicationId)
      }
    })
  }
}
