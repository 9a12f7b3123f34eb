import { type ProblemKind, problemTable } from 'busbar/sdk'

export const problems = problemTable({
  notFound: [404, 'E_DATABASE_NOT_FOUND', 'database {databaseId} does not exist in this project'],
  projectGone: [404, 'E_DATABASE_PROJECT_GONE', 'project {projectId} does not exist'],
  applicationGone: [
    404,
    'E_DATABASE_APPLICATION',
    'application {applicationId} does not exist in this project'
  ],
  notAttached: [
    404,
    'E_DATABASE_NOT_ATTACHED',
    'the database is not attached to application {applicationId}'
  ],
  invalid: [400, 'E_DATABASE_INVALID', '{field} {reason}'],
  unknownType: [400, 'E_DATABASE_TYPE', 'type {type} is not known; there are {available}', { field: 'type' }],
  busy: [
    409,
    'E_DATABASE_BUSY_NOW',
    'the database is {what} now',
    'try again when its status is running, stopped or failed'
  ],
  notRunning: [409, 'E_DATABASE_NOT_RUNNING', 'the database is {status}', 'start it first'],
  noContainer: [
    409,
    'E_DATABASE_NO_CONTAINER',
    'database {slug} has no container',
    'reload it: its data is kept'
  ],
  notUpgradable: [
    400,
    'E_DATABASE_NOT_UPGRADABLE',
    'databases of type {type} are not upgraded',
    { field: 'target_version' }
  ],
  olderVersion: [400, 'E_DATABASE_OLDER_VERSION', '{reason}', { field: 'target_version' }],
  noExternalAccess: [
    503,
    'E_DATABASE_EXTERNAL_ACCESS',
    'the machine cannot be given a port of the database ({reason})',
    '{remedy}'
  ],
  noBindAddress: [
    503,
    'E_DATABASE_BIND',
    'BUSBAR_DATABASE_BIND leads to no address ({reason})',
    'set it to an address of the platform, or a name that leads to one'
  ],
  noUpgrade: [404, 'E_DATABASE_NO_UPGRADE', 'the database has no upgrade whose old volume is kept'],
  unreadable: [
    500,
    'E_DATABASE_UNREADABLE',
    'the credentials of the database cannot be decrypted',
    'its key is gone: bring back the keys of the installation'
  ],
  containersOff: [503, 'E_PLUGIN_OFF', '"containers" is off', 'turn on a plugin that implements it'],
  buildsOff: [503, 'E_PLUGIN_OFF', '"builds" is off, which fetches images', 'turn it on'],
  logsOff: [503, 'E_PLUGIN_OFF', '"logs" is off', 'turn it on'],
  engineOff: [503, 'E_DATABASE_ENGINE_OFF', 'the plugin that brings the type {type} is off', 'turn it on']
})

/** As a field is refused that has the right form. */
export const invalidField: ProblemKind = Object.freeze({
  status: problems.invalid.status,
  code: problems.invalid.code,
  message: 'a field does not fit the type, or another field; the error names it'
})

/** What each operation may be refused with that works on one that exists. */
export const onOne: readonly ProblemKind[] = Object.freeze([problems.notFound, problems.engineOff])
