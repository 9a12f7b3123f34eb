import { containerProblems } from 'busbar/api/containers'
import { allow, type RouteDeclarer, reply, statusResponse } from 'busbar/sdk'
import { inDatabase } from '../api.js'
import type { Databases } from '../databases.js'
import { onOne, problems } from '../problems.js'
import { database } from '../schemas.js'
import { stopGraceSeconds } from './server-container.js'

const group = 'Database Actions'
const one = '/api/projects/:projectId/databases/:databaseId'
const actions = [
  [
    'start',
    'StartDatabase',
    'Start Database',
    'Starts the container that exists. Nothing happens when it runs.'
  ],
  [
    'stop',
    'StopDatabase',
    'Stop Database',
    `Stops the container. Its server has ${stopGraceSeconds} seconds to close its files, and does not come back before it is started.`
  ],
  [
    'restart',
    'RestartDatabase',
    'Restart Database',
    'Stops the container and starts it again, as it was made.'
  ]
] as const

/** The verbs that act on the container that exists, and the one that makes another. */
export function actionRoutes(route: RouteDeclarer<Databases>) {
  for (const [action, operationId, summary, description] of actions)
    route({
      method: 'POST',
      url: `${one}/${action}`,
      group,
      operationId,
      summary,
      description,
      problems: [...onOne, problems.busy, problems.noContainer, problems.containersOff, ...containerProblems],
      idempotent: action !== 'stop',
      access: allow.token('deploy', { project: inDatabase }),
      schema: { response: { 200: database } },
      timeoutMs: (stopGraceSeconds + 30) * 1000,
      audit: { action: `${action}_database`, resource: 'database', id: { param: 'databaseId' } },
      handler: async ({ project, params }, { databases, control }) => {
        await control[action](project, params.databaseId)
        return await databases.get(project, params.databaseId)
      }
    })
  route({
    method: 'POST',
    url: `${one}/reload`,
    group,
    operationId: 'ReloadDatabase',
    summary: 'Reload Database',
    description:
      'Makes its container anew, with the limits of today and the image of before. Its data is kept. It is done afterwards: `status` is `creating` until its server answers.',
    problems: [...onOne, problems.busy],
    idempotent: true,
    access: allow.token('deploy', { project: inDatabase }),
    schema: { response: { 202: statusResponse } },
    audit: { action: 'reload_database', resource: 'database', id: { param: 'databaseId' } },
    handler: async ({ project, params }, { control }) =>
      reply(202, await control.reload(project, params.databaseId))
  })
}
