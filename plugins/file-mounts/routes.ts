import { inApplication } from 'busbar/api/applications'
import { mountPathProblems } from 'busbar/api/deployments'
import { allow, type RouteDeclarer } from 'busbar/sdk'
import type { FileMounts } from './file-mounts.js'
import { problems } from './problems.js'
import { createBody, deletedAnswer, fileMount, mostBodyBytes, revealAnswer, updateBody } from './schemas.js'

const group = 'Application File Mounts'
const all = '/api/projects/:projectId/applications/:applicationId/file-mounts'
const one = `${all}/:fileMountId` as const
const inFileMount = {
  ...inApplication,
  chain: { ...inApplication.chain, fileMountId: 'file_mount' }
} as const
const id = { param: 'fileMountId' } as const
const contentFaults = [problems.badMode, problems.tooLong, problems.tooMuch]

export function routes(route: RouteDeclarer<FileMounts>): void {
  route.list({
    url: all,
    group,
    operationId: 'ListFileMounts',
    summary: 'Get Mounts',
    description:
      'The file mounts of the application, by path. A token sees no content, a session that of those that are not secret.',
    items: fileMount,
    access: allow.token('read', { project: inApplication }),
    problems: [problems.applicationGone],
    handler: async ({ project, params, caller, page }, { fileMounts }) =>
      await fileMounts.list(project, params.applicationId, caller, page)
  })
  route({
    method: 'POST',
    url: all,
    group,
    operationId: 'CreateFileMount',
    summary: 'Create Mount',
    description:
      'Adds a file that containers of the application see and cannot change. The application is marked as changed (`pending_change`): its container has it from the next deploy or reload on.',
    problems: [...mountPathProblems, ...contentFaults, problems.tooMany, problems.applicationGone],
    access: allow.token('write', { project: inApplication }),
    bodyLimit: mostBodyBytes,
    schema: { body: createBody, response: { 201: fileMount } },
    idempotent: true,
    audit: { action: 'create_file_mount', resource: 'file_mount', id: { result: 'id' } },
    handler: async ({ project, params, caller, body }, { fileMounts }) =>
      await fileMounts.create(project, params.applicationId, caller, body)
  })
  route({
    method: 'PUT',
    url: one,
    group,
    operationId: 'UpdateFileMount',
    summary: 'Update Mount',
    description:
      'Changes what the body names. The container sees what it was made with until the next deploy or reload.',
    problems: [...contentFaults, problems.staysSecret, problems.notFound],
    access: allow.token('write', { project: inFileMount }),
    bodyLimit: mostBodyBytes,
    schema: { body: updateBody, response: { 200: fileMount } },
    audit: { action: 'update_file_mount', resource: 'file_mount', id },
    handler: async ({ params, caller, body }, { fileMounts }) =>
      await fileMounts.update(params.applicationId, params.fileMountId, caller, body)
  })
  route({
    method: 'DELETE',
    url: one,
    group,
    operationId: 'DeleteFileMount',
    summary: 'Delete Mount',
    description: 'The container sees the file until the next deploy or reload.',
    problems: [problems.notFound],
    access: allow.token('write', { project: inFileMount }),
    schema: { response: { 200: deletedAnswer } },
    audit: { action: 'delete_file_mount', resource: 'file_mount', id },
    handler: async ({ params }, { fileMounts }) =>
      await fileMounts.delete(params.applicationId, params.fileMountId)
  })
  route({
    method: 'GET',
    url: `${one}/reveal`,
    group,
    operationId: 'RevealFileMount',
    summary: 'Reveal File Mount',
    description: 'The content in clear, secret or not. Each call is written to the audit log.',
    problems: [problems.notFound, problems.unreadable],
    access: allow.session({ project: inFileMount }),
    schema: { response: { 200: revealAnswer } },
    audit: { action: 'reveal_file_mount', resource: 'file_mount', id },
    handler: async ({ params }, { fileMounts }) =>
      await fileMounts.reveal(params.applicationId, params.fileMountId)
  })
}
