import type { ContractOperation } from './contract.js'

type Extension = Omit<ContractOperation, 'method' | 'path' | 'group'> & { readonly reason: string }

/** Operations and channels that the contract does not name, and what they should demand, each with the reason why it exists. */
export const extensions: Readonly<Record<string, Extension>> = {
  'GET /api/builders': { scope: 'read', session: true, admin: false, reason: 'which build types there are, and what a build type that cannot be used here is missing' },
  'GET /api/auth/sessions': { scope: null, session: true, admin: false, reason: 'users see where they are signed in' },
  'GET /api/docs': { public: true, scope: null, session: false, admin: false, reason: 'people read what programs read in /api/openapi.json' },
  'GET /api/docs/style.css': { public: true, scope: null, session: false, admin: false, reason: 'a file of that page' },
  'GET /api/docs/page.js': { public: true, scope: null, session: false, admin: false, reason: 'a file of that page' },
  'GET /api/docs/operation.js': { public: true, scope: null, session: false, admin: false, reason: 'a file of that page' },
  'GET /api/docs/schema.js': { public: true, scope: null, session: false, admin: false, reason: 'a file of that page' },
  'GET /api/docs/dom.js': { public: true, scope: null, session: false, admin: false, reason: 'a file of that page' },
  'DELETE /api/auth/sessions/{sessionId}': { scope: null, session: true, admin: false, reason: 'and end a session that is not theirs any more' }
}
