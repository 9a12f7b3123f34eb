import { problemTable } from 'busbar/sdk'

export const problems = problemTable({
  badStatus: [400, 'E_REQUESTS_STATUS', '{field} must be a whole number from 100 to 599'],
  badApplication: [
    400,
    'E_REQUESTS_APPLICATION',
    'application_id must be a UUID in lowercase hyphenated form',
    { field: 'application_id' }
  ],
  badCursor: [
    400,
    'E_REQUESTS_CURSOR',
    'cursor is none that this list has answered',
    { field: 'cursor', remedy: 'leave it out to begin with the first page' }
  ],
  tooSlow: [
    503,
    'E_REQUESTS_SLOW',
    'there are too many requests to be looked through in time',
    'narrow it by from and to, or by application_id'
  ]
})
