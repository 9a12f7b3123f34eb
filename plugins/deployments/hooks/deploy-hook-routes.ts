import { inApplication } from 'busbar/api/applications'
import { allow, type RouteDeclarer, reply } from 'busbar/sdk'
import type { Deployments } from '../deployments.js'
import { problems } from '../problems.js'
import { deployHook, hookCalled, hookEnabled, hookParams } from '../schemas.js'

const group = 'Application Deployments'
const url = '/api/projects/:projectId/applications/:applicationId/deploy-hook'
const applicationParam = { param: 'applicationId' } as const

export function deployHookRoutes(route: RouteDeclarer<Deployments>) {
  route({
    method: 'POST',
    url,
    group,
    operationId: 'GenerateDeployHook',
    summary: 'Generate Deploy Hook',
    description:
      'Makes a URL that deploys the application without a credential; a former one works no longer.',
    problems: [problems.applicationMissing],
    idempotent: true,
    access: allow.token('write', { project: inApplication }),
    schema: { response: { 200: deployHook } },
    audit: {
      action: 'create_deploy_hook',
      otherwise: { action: 'regenerate_deploy_hook', when: 'wasThere' },
      resource: 'application',
      id: applicationParam
    },
    async handler({ project, params, caller }, { hooks }) {
      const { wasThere, ...hook } = await hooks.generate(project, params.applicationId)
      // The token is a stored secret: only a person is shown it.
      return { ...(caller.kind === 'session' ? hook : { enabled: true }), wasThere }
    }
  })
  route({
    method: 'GET',
    url,
    group,
    operationId: 'GetDeployHook',
    summary: 'Get Deploy Hook',
    description: 'Whether the application has a deploy hook.',
    access: allow.token('read', { project: inApplication }),
    schema: { response: { 200: hookEnabled } },
    handler: async ({ project, params }, { hooks }) => ({
      enabled: await hooks.isEnabled(project, params.applicationId)
    })
  })
  route({
    method: 'GET',
    url: `${url}/reveal`,
    group,
    operationId: 'RevealDeployHook',
    summary: 'Reveal Deploy Hook',
    description: 'The URL and its token in clear. Each call is written to the audit log.',
    problems: [problems.noHook],
    access: allow.session({ project: inApplication }),
    schema: { response: { 200: deployHook } },
    audit: { action: 'reveal_deploy_hook', resource: 'application', id: applicationParam },
    handler: async ({ project, params }, { hooks }) => await hooks.reveal(project, params.applicationId)
  })
  route({
    method: 'DELETE',
    url,
    group,
    operationId: 'DeleteDeployHook',
    summary: 'Delete Deploy Hook',
    description: 'The URL works no longer; nothing happens when there is none.',
    access: allow.token('write', { project: inApplication }),
    schema: { response: { 200: hookEnabled } },
    audit: { action: 'delete_deploy_hook', resource: 'application', id: applicationParam },
    async handler({ project, params }, { hooks }) {
      await hooks.remove(project, params.applicationId)
      return { enabled: false }
    }
  })
  route({
    method: 'POST',
    url: '/api/webhooks/deploy/:token',
    group: 'Public',
    operationId: 'DeployHook',
    summary: 'Deploy Hook',
    description:
      'Deploys the application whose hook the token is of. The body is ignored. While a deployment is active nothing is begun, and the answer says so.',
    problems: [problems.hookMissing, problems.noSource],
    idempotent: true,
    access: allow.public('the token in the path is the credential'),
    limit: { max: 30, windowSeconds: 60 },
    // Hosts of repositories call for everybody from the same addresses.
    limitKey: async ({ params }, { hooks }) => await hooks.applicationOf(params.token),
    schema: { params: hookParams, response: { 202: hookCalled } },
    audit: { action: 'trigger_deploy_hook', resource: 'application', id: { result: 'application_id' } },
    handler: async ({ params }, { hooks }) => reply(202, await hooks.call(params.token))
  })
}
