import { problemTable } from 'busbar/sdk'

export const problems = problemTable({
  projectGone: [404, 'E_PROJECT_NOT_FOUND', 'project {projectId} does not exist'],
  resourceGone: [404, 'E_BACKUP_RESOURCE_NOT_FOUND', '{kind} {id} does not exist in this project'],
  sourceOff: [
    503,
    'E_BACKUP_SOURCE_OFF',
    'backups of a {kind} are made by a plugin that is off',
    'turn it on, and try again'
  ],

  destinationNotFound: [
    404,
    'E_BACKUP_DESTINATION_NOT_FOUND',
    'backup destination {destinationId} does not exist in this project'
  ],
  destinationUnknown: [
    400,
    'E_BACKUP_DESTINATION_UNKNOWN',
    'destination_id: there is no backup destination {destinationId} in this project',
    { field: 'destination_id' }
  ],
  destinationNameTaken: [
    409,
    'E_BACKUP_DESTINATION_NAME',
    'there is a backup destination {name} in this project already',
    { field: 'name' }
  ],
  destinationField: [400, 'E_BACKUP_DESTINATION_FIELD', '{field} must not be empty'],
  destinationKeys: [
    400,
    'E_BACKUP_DESTINATION_KEYS',
    'access_key and secret_key must be given, both of them',
    { field: 'access_key' }
  ],
  destinationKeysAgain: [
    400,
    'E_BACKUP_DESTINATION_KEYS_AGAIN',
    'access_key and secret_key must be sent again: the destination moves to {host}, and stored keys are never sent to another host',
    { field: 'secret_key' }
  ],
  endpointInvalid: [
    400,
    'E_BACKUP_DESTINATION_ENDPOINT',
    'endpoint: {endpoint} is no host',
    {
      field: 'endpoint',
      remedy: 'write a host, with its port where there is one, such as s3.example.com:9000'
    }
  ],
  prefixInvalid: [
    400,
    'E_BACKUP_PREFIX',
    'prefix may have letters, digits and ._-/ only, and no part that is . or ..',
    { field: 'prefix' }
  ],
  providerUnknown: [
    400,
    'E_BACKUP_DESTINATION_PROVIDER',
    'provider: {provider} is none of {known}',
    { field: 'provider' }
  ],
  destinationLocked: [
    409,
    'E_BACKUP_DESTINATION_LOCKED',
    '{field} cannot be changed while there are {count} backups there',
    'make another destination'
  ],
  destinationInUse: [
    409,
    'E_BACKUP_DESTINATION_IN_USE',
    'the destination is used by {schedules} schedules and holds {count} backups',
    'delete these first'
  ],
  tooManyDestinations: [
    409,
    'E_BACKUP_DESTINATION_LIMIT',
    'there are {limit} backup destinations here already',
    'delete one that is not used any more'
  ],
  keysUnreadable: [
    500,
    'E_BACKUP_DESTINATION_UNREADABLE',
    'the stored keys of the destination {name} cannot be decrypted',
    'enter them again, or restore the key they were encrypted with'
  ],

  configNotFound: [404, 'E_BACKUP_CONFIG_NOT_FOUND', 'there is no backup schedule {configId} here'],
  scheduleFields: [
    400,
    'E_BACKUP_SCHEDULE_FIELDS',
    '{field} takes five fields: minute, hour, day of the month, month, day of the week',
    'such as "0 3 * * *" for every day at three'
  ],
  scheduleNever: [
    400,
    'E_BACKUP_SCHEDULE_NEVER',
    '{field} is never due: no day of the calendar is one that it names'
  ],
  databasesUnknown: [
    400,
    'E_BACKUP_DATABASES',
    'databases: there is no {database} in it',
    { field: 'databases' }
  ],
  databasesChoice: [
    400,
    'E_BACKUP_DATABASES_CHOICE',
    'databases: {reason}',
    { field: 'databases', remedy: 'leave it out: all that is there is backed up' }
  ],
  tooManyConfigs: [
    409,
    'E_BACKUP_CONFIG_LIMIT',
    'there are {limit} schedules here already',
    'delete one that is not used any more'
  ],

  busy: [409, 'E_BACKUP_BUSY', 'a backup is already in progress'],
  restoreBusy: [409, 'E_RESTORE_BUSY', 'a restore is already in progress'],
  refused: [409, 'E_BACKUP_REFUSED', '{reason}'],
  notFound: [404, 'E_BACKUP_NOT_FOUND', 'there is no backup {backupId} here'],
  backupUnknown: [
    400,
    'E_RESTORE_BACKUP',
    'backup_id: there is no backup {backupId} of this {kind}',
    { field: 'backup_id' }
  ],
  backupOfOther: [
    400,
    'E_RESTORE_OTHER',
    'backup_id: the backup {backupId} is one of {name}',
    {
      field: 'backup_id',
      remedy: 'with "from_other": true it is restored here all the same, and replaces what is here'
    }
  ],
  otherEngine: [
    400,
    'E_RESTORE_ENGINE',
    'backup_id: a backup of {from} cannot be restored into {to}',
    { field: 'backup_id' }
  ],
  notSucceeded: [409, 'E_RESTORE_UNFINISHED', 'the backup has not succeeded: it is {status}'],
  inUse: [409, 'E_BACKUP_IN_USE', 'the backup is being {what}', 'wait until that is over'],
  nameTaken: [
    409,
    'E_DATABASE_TAKEN',
    '{reason}',
    'with "from_other": true the backup is restored into what has that name now, as it is where a restore like this one was cut off'
  ],
  notRecreated: [
    409,
    'E_RESTORE_RECREATE',
    'a {engine} that was deleted cannot be made again from its backup',
    'make a new one and restore the backup into it'
  ]
})
