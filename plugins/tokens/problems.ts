import { problemTable } from 'busbar/sdk'

export const problems = problemTable({
  nameMissing: [400, 'E_TOKEN_NAME', 'name must not be empty', { field: 'name' }],
  scopeInvalid: [400, 'E_TOKEN_SCOPE', 'select at least one valid scope', { field: 'scopes' }],
  expiryInvalid: [400, 'E_TOKEN_EXPIRY', 'invalid expires_in_days', { field: 'expires_in_days' }],
  projectUnreachable: [
    400,
    'E_TOKEN_PROJECT',
    'project {projectId} in project_ids does not exist or is not yours to reach',
    { field: 'project_ids' }
  ],
  notFound: [404, 'E_TOKEN_NOT_FOUND', 'token not found']
})
