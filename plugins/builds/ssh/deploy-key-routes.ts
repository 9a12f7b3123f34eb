import { inApplication } from 'busbar/api/applications'
import { allow, list, type RouteDeclarer, statusResponse } from 'busbar/sdk'
import type { Builds } from '../builds.js'
import { deployKeyAnswer, hostKeyAnswer } from '../schemas.js'

const group = 'Application Resources'
const one = '/api/projects/:projectId/applications/:applicationId'
const id = { param: 'applicationId' } as const

/** The key by which an application reads its repository over SSH. The private part is in no answer. */
export function deployKeyRoutes(route: RouteDeclarer<Builds>) {
  route({
    method: 'GET',
    url: `${one}/deploy-key`,
    group,
    operationId: 'GetDeployKey',
    summary: 'Get Deploy Key',
    access: allow.token('read', { project: inApplication }),
    schema: { response: { 200: deployKeyAnswer } },
    handler: async ({ params }, { deployKeys }) => await deployKeys.get(params)
  })
  route({
    method: 'POST',
    url: `${one}/deploy-key`,
    group,
    operationId: 'GenerateDeployKey',
    summary: 'Generate Deploy Key',
    access: allow.token('write', { project: inApplication }),
    schema: { response: { 200: deployKeyAnswer } },
    audit: {
      action: 'create_deploy_key',
      otherwise: { action: 'replace_deploy_key', when: 'wasThere' },
      resource: 'application',
      id
    },
    handler: async ({ params }, { deployKeys }) => await deployKeys.make(params)
  })
  route({
    method: 'DELETE',
    url: `${one}/deploy-key`,
    group,
    operationId: 'DeleteDeployKey',
    summary: 'Delete Deploy Key',
    access: allow.token('write', { project: inApplication }),
    schema: { response: { 200: statusResponse } },
    audit: { action: 'delete_deploy_key', resource: 'application', id },
    handler: async ({ params }, { deployKeys }) => await deployKeys.delete(params)
  })
  route({
    method: 'GET',
    url: `${one}/host-keys`,
    group,
    operationId: 'ListHostKeys',
    summary: 'Get Host Keys',
    access: allow.token('read', { project: inApplication }),
    schema: { response: { 200: list(hostKeyAnswer) } },
    handler: async ({ params }, { deployKeys }) => await deployKeys.hostKeys(params)
  })
  route({
    method: 'DELETE',
    url: `${one}/host-keys`,
    group,
    operationId: 'ForgetHostKeys',
    summary: 'Forget Host Keys',
    access: allow.token('write', { project: inApplication }),
    schema: { response: { 200: statusResponse } },
    audit: { action: 'forget_host_keys', resource: 'application', id },
    handler: async ({ params }, { deployKeys }) => await deployKeys.forgetHosts(params)
  })
}
