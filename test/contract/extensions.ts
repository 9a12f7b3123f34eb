import type { ContractOperation } from './contract.js'

type Extension = Omit<ContractOperation, 'method' | 'path' | 'group'> & { readonly reason: string }

/** Operations and channels that the contract does not name, and what they should demand, each with the reason why it exists. */
export const extensions: Readonly<Record<string, Extension>> = {
  'GET /api/auth/sessions': { scope: null, session: true, admin: false, reason: 'users see where they are signed in' },
  'DELETE /api/auth/sessions/{sessionId}': { scope: null, session: true, admin: false, reason: 'and end a session that is not theirs any more' }
}
