import { problemTable } from 'busbar/sdk'

export const problems = problemTable({
  notFound: [404, 'E_VOLUME_NOT_FOUND', 'the volume {volumeId} does not exist in this application'],
  applicationGone: [404, 'E_VOLUME_APPLICATION_GONE', 'the application {applicationId} does not exist'],
  badName: [
    400,
    'E_VOLUME_NAME',
    'name: {name} is no name for a volume',
    { field: 'name', remedy: 'use letters, digits and hyphens, 40 of them at most' }
  ],
  nameTaken: [
    409,
    'E_VOLUME_NAME_TAKEN',
    'name: the application has a volume {name} already',
    { field: 'name', remedy: 'choose another name' }
  ],
  nameLeaving: [
    409,
    'E_VOLUME_NAME_LEAVING',
    'name: the data of a volume {name} that was deleted are still being removed',
    {
      field: 'name',
      remedy:
        'choose another name, or deploy or reload the application, whose container still has it, and try again'
    }
  ],
  tooMany: [
    409,
    'E_VOLUME_LIMIT',
    'the application has {limit} volumes already',
    'delete one that is not used any more'
  ]
})
