import { type ProblemKind, problemTable } from 'busbar/sdk'

export const problems = problemTable({
  notFound: [404, 'E_APPLICATION_NOT_FOUND', 'application {applicationId} does not exist in this project'],
  projectGone: [404, 'E_APPLICATION_PROJECT_GONE', 'project {projectId} does not exist'],
  invalid: [400, 'E_APPLICATION_INVALID', '{field} {reason}'],
  invalidBranch: [400, 'E_APPLICATION_BRANCH', 'invalid branch name'],
  tokenNeeded: [
    400,
    'E_APPLICATION_TOKEN_NEEDED',
    'git_token must be sent again: source_repo moves from {from} to {to}, and a stored token is never sent to another host (null drops it)',
    { field: 'git_token' }
  ],
  credentialsNeeded: [
    400,
    'E_APPLICATION_CREDENTIALS_NEEDED',
    'registry_password must be sent again: source_image moves from the registry {from} to {to}, and a stored password is never sent to another host (null drops it)',
    { field: 'registry_password' }
  ],
  sameType: [
    400,
    'E_APPLICATION_SAME_TYPE',
    'type is {type} already; change-source takes the other one',
    { field: 'type' }
  ],
  hasPreviews: [
    409,
    'E_APPLICATION_HAS_PREVIEWS',
    'the application has preview environments',
    'delete them before its source is changed'
  ],
  busy: [409, 'E_APPLICATION_BUSY', '{reason}'],
  noContainer: [409, 'E_APPLICATION_NO_CONTAINER', 'application {slug} has no container', 'deploy it first'],
  containersOff: [503, 'E_PLUGIN_OFF', '"containers" is off', 'turn on a plugin that implements it'],
  imagesOff: [503, 'E_PLUGIN_OFF', '"images" is off', 'turn on a plugin that implements it'],
  noWebhookSecret: [
    404,
    'E_APPLICATION_NO_WEBHOOK_SECRET',
    'the application has no webhook secret',
    'set one with PUT …/webhook'
  ]
})

/** As a gate of another plugin refuses, in its words. */
export const refusedByGate: ProblemKind = Object.freeze({
  status: problems.busy.status,
  code: problems.busy.code,
  message: 'another plugin refuses it now and says why, as deployments do while one is in progress'
})

/** As a field is refused that has the right form. */
export const invalidField: ProblemKind = Object.freeze({
  status: problems.invalid.status,
  code: problems.invalid.code,
  message: 'a field does not fit the application, or another field; the error names it'
})

/** What is wrong with fields that say where a source is, and how it is built. */
export const sourceProblems: readonly ProblemKind[] = Object.freeze([invalidField, problems.invalidBranch])

/** A 400 about one field, which its details name too. */
export const invalid = (field: string, reason: string) => problems.invalid({ field, reason })
