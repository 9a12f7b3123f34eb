import { inApplication } from 'busbar/api/applications'
import { allow, pageOf, type RouteDeclarer, statusResponse } from 'busbar/sdk'
import type { Builds } from '../builds.js'
import { problems } from '../problems.js'
import { deployKeyAnswer, hostKeyAnswer } from '../schemas.js'
import { sshProblems } from './problems.js'

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
    description:
      'The public part of the key by which the application reads its repository over SSH. The private part is in no answer.',
    problems: [sshProblems.deployKeyMissing],
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
    description:
      'Makes a key in the place of the former, which works no longer: add the public part to the repository, to read is enough.',
    problems: [problems.applicationGone],
    idempotent: true,
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
    description: 'Repositories are read without a key from now on, which over SSH does not work.',
    problems: [problems.applicationGone, sshProblems.deployKeyMissing],
    access: allow.token('write', { project: inApplication }),
    schema: { response: { 200: statusResponse } },
    audit: { action: 'delete_deploy_key', resource: 'application', id },
    handler: async ({ params }, { deployKeys }) => await deployKeys.delete(params)
  })
  route.list({
    url: `${one}/host-keys`,
    group,
    operationId: 'ListHostKeys',
    summary: 'Get Host Keys',
    description:
      'By which keys the application knows the hosts of its repositories. The key that a host shows first is kept, and another one refused later.',
    access: allow.token('read', { project: inApplication }),
    items: hostKeyAnswer,
    handler: async ({ params, page }, { deployKeys }) => pageOf(page, await deployKeys.hostKeys(params))
  })
  route({
    method: 'DELETE',
    url: `${one}/host-keys`,
    group,
    operationId: 'ForgetHostKeys',
    summary: 'Forget Host Keys',
    description: 'The next clone takes the key that the host shows then.',
    access: allow.token('write', { project: inApplication }),
    schema: { response: { 200: statusResponse } },
    audit: { action: 'forget_host_keys', resource: 'application', id },
    handler: async ({ params }, { deployKeys }) => await deployKeys.forgetHosts(params)
  })
}
