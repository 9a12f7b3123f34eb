import { problemTable } from 'busbar/sdk'

export const problems = problemTable({
  accountGone: [401, 'E_ACCOUNT_GONE', 'this account no longer exists'],
  sessionNotFound: [404, 'E_SESSION_NOT_FOUND', 'session not found'],
  refreshRefused: [401, 'E_AUTH_REFRESH', 'invalid or expired refresh token', 'sign in again']
})
