import { containerProblems } from 'busbar/api/containers'
import { allow, type RouteDeclarer } from 'busbar/sdk'
import { inApplication } from './api.js'
import type { Applications } from './applications.js'
import { stopGraceSeconds } from './container-control.js'
import { problems, refusedByGate } from './problems.js'
import { application } from './schemas.js'

const one = '/api/projects/:projectId/applications/:applicationId'
const actions = [
  [
    'start',
    'StartApplication',
    'Start App',
    'Starts the container that exists, as it was made: changed settings take a reload. Nothing happens when it runs.'
  ],
  [
    'stop',
    'StopApplication',
    'Stop App',
    `Stops the container. It has ${stopGraceSeconds} seconds to end by itself, and does not come back before it is started.`
  ],
  [
    'restart',
    'RestartApplication',
    'Restart App',
    'Stops the container and starts it again, as it was made: changed settings take a reload.'
  ]
] as const

/** The verbs that act on the container that exists. */
export function actionRoutes(route: RouteDeclarer<Applications>) {
  for (const [action, operationId, summary, description] of actions) {
    route({
      method: 'POST',
      url: `${one}/${action}`,
      group: 'Application Actions',
      operationId,
      summary,
      description,
      problems: [
        problems.notFound,
        problems.containersOff,
        refusedByGate,
        problems.noContainer,
        ...containerProblems
      ],
      idempotent: action !== 'stop',
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
