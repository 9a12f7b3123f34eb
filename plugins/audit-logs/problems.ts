import { problemTable } from 'busbar/sdk'

export const problems = problemTable({
  badUser: [400, 'E_AUDIT_USER', 'user_id must be a UUID in lowercase hyphenated form', { field: 'user_id' }],
  badTime: [400, 'E_AUDIT_TIME', '{field} must be an RFC 3339 time, such as 2026-01-31T12:00:00Z']
})
