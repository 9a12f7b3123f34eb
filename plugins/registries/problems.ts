import { problemTable } from 'busbar/sdk'

export const problems = problemTable({
  badRegistry: [
    400,
    'E_REGISTRY_NAME',
    'registry: {registry} is no registry',
    {
      field: 'registry',
      remedy:
        'write its host, with the port where there is one, such as docker.io, ghcr.io or registry.example.com:5000'
    }
  ],
  projectGone: [404, 'E_PROJECT_NOT_FOUND', 'project {projectId} does not exist'],
  notFound: [404, 'E_REGISTRY_ACCOUNT_NOT_FOUND', 'the registry account {accountId} does not exist here'],
  tooMany: [
    409,
    'E_REGISTRY_ACCOUNT_LIMIT',
    'there are {limit} registry accounts here already',
    'delete one that is not used any more'
  ],
  unreadable: [
    500,
    'E_REGISTRY_ACCOUNT_UNREADABLE',
    'the stored password of the account {username} of the registry {registry} cannot be decrypted',
    'set the account again, or restore the key it was encrypted with'
  ]
})
