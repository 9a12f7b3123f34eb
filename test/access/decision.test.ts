import { type Access, allow, type ProjectFacts, projectRoleFor, type SignedInCaller } from 'busbar/sdk'
import { test } from 'tap'
import { decideCaller, decidePins, decideProject } from '../../core/access/decision.js'

const user = (role: 'admin' | 'member', id = 'u1') => ({ id, email: 'u@example.com', username: 'u', role })
const session = (role: 'admin' | 'member' = 'member'): SignedInCaller => ({
  kind: 'session',
  sessionId: 's',
  user: user(role)
})
const token = (
  scope: 'metrics' | 'read' | 'deploy' | 'write',
  options: { pins?: string[]; role?: 'admin' | 'member' } = {}
): SignedInCaller => ({
  kind: 'token',
  tokenId: 't',
  tokenName: 't',
  scope,
  pins: options.pins ?? null,
  user: user(options.role ?? 'member')
})
const facts = (change: Partial<ProjectFacts> = {}): ProjectFacts => ({
  id: 'p',
  ownerId: 'u1',
  shared: false,
  members: {},
  deleting: false,
  ...change
})

const write: Access = allow.token('write', { project: 'none' })

test('each scope includes the narrower ones and no wider one', async t => {
  t.equal(decideCaller(token('write'), allow.token('metrics', { project: 'none' })), null)
  t.match(decideCaller(token('deploy'), write), { status: 403, message: 'token lacks required scope: write' })
  t.match(decideCaller(token('metrics'), allow.token('read', { project: 'none' })), {
    message: 'token lacks required scope: read'
  })
})

test('a session passes every scope, and a token passes no session-only route', async t => {
  t.equal(decideCaller(session(), write), null)
  t.match(decideCaller(token('write', { role: 'admin' }), allow.session({ project: 'none' })), {
    status: 403,
    message: 'this action requires a session, not a personal access token'
  })
})

test('who still has to set up a second factor may do that and nothing else, and tokens are not asked', async t => {
  const caller: SignedInCaller = { kind: 'session', sessionId: 's', user: user('admin'), mustEnroll: true }
  t.match(decideCaller(caller, write), { status: 403, code: 'E_SECOND_FACTOR_REQUIRED' })
  t.match(decideCaller(caller, allow.session({ role: 'admin', project: 'none' })), {
    code: 'E_SECOND_FACTOR_REQUIRED'
  })
  t.equal(decideCaller(caller, allow.session({ project: 'none', whileEnrolling: true })), null)
  t.equal(decideCaller(token('write'), write), null)
})

test('the admin role is asked for after the scope', async t => {
  const admin = allow.token('write', { role: 'admin', project: 'none' })
  t.match(decideCaller(token('read'), admin), { code: 'E_SCOPE' })
  t.match(decideCaller(token('write'), admin), { code: 'E_FORBIDDEN' })
  t.equal(decideCaller(token('write', { role: 'admin' }), admin), null)
})

test('a pinned token is refused outside its pins, reaches nothing with none left, and never where pins are refused', async t => {
  t.equal(decidePins(token('read', { pins: ['p'] }), 'p'), null)
  t.match(decidePins(token('read', { pins: ['q'] }), 'p'), { status: 403, code: 'E_PROJECT_PINNED' })
  t.match(decidePins(token('read', { pins: [] }), 'p'), { status: 403 })
  t.match(decideCaller(token('read', { pins: ['p'] }), allow.token('read', { project: 'never-pinned' })), {
    status: 403
  })
})

test('a project is visible to its owner, to everybody when shared, to its members, and to admins', async t => {
  const other = { ownerId: 'other' }
  t.equal(decideProject(session(), facts(), 'viewer'), null)
  t.match(decideProject(session(), facts(other), 'viewer'), { status: 404 })
  t.equal(decideProject(session(), facts({ ...other, shared: true }), 'viewer'), null)
  t.equal(decideProject(session(), facts({ ...other, members: { u1: 'viewer' } }), 'viewer'), null)
  t.match(decideProject(session(), facts({ ...other, members: { u2: 'editor' } }), 'viewer'), { status: 404 })
  t.equal(decideProject(session('admin'), facts(other), 'viewer'), null)
  t.match(decideProject(session('admin'), undefined, 'viewer'), { status: 404 })
})

test('a project that is being deleted is invisible even to its owner', async t => {
  t.match(decideProject(session(), facts({ deleting: true }), 'viewer'), { status: 404 })
  t.match(
    decideProject(
      session(),
      facts({ ownerId: 'other', members: { u1: 'editor' }, deleting: true }),
      'viewer'
    ),
    { status: 404 }
  )
})

test('what is left to the owner is refused to everybody else who sees the project', async t => {
  for (const change of [
    { shared: true },
    { members: { u1: 'editor' } },
    { members: { u1: 'viewer' } }
  ] as const) {
    t.match(decideProject(session(), facts({ ownerId: 'other', ...change }), 'owner'), {
      status: 403,
      code: 'E_FORBIDDEN'
    })
  }
  t.equal(decideProject(session('admin'), facts({ ownerId: 'other' }), 'owner'), null)
})

test('a viewer reads only, and the wider of a role and of sharing with everybody counts', async t => {
  const viewed = facts({ ownerId: 'other', members: { u1: 'viewer' } })
  t.match(decideProject(session(), viewed, 'editor'), {
    status: 403,
    code: 'E_PROJECT_VIEWER',
    message: 'you are a viewer of this project and may only read: ask its owner to make you an editor'
  })
  t.match(decideProject(token('write'), viewed, 'editor'), { code: 'E_PROJECT_VIEWER' })
  t.equal(decideProject(session(), { ...viewed, shared: true }, 'editor'), null)
  t.equal(decideProject(session(), facts({ ownerId: 'other', members: { u1: 'editor' } }), 'editor'), null)
})

test('an operation demands of a project what its access declares', async t => {
  const project = { param: 'projectId' } as const
  for (const scope of ['metrics', 'read'] as const)
    t.equal(projectRoleFor(allow.token(scope, { project })), 'viewer')
  for (const scope of ['deploy', 'write'] as const)
    t.equal(projectRoleFor(allow.token(scope, { project })), 'editor')
  t.equal(projectRoleFor(allow.session({ project })), 'editor', 'a reveal')
  t.equal(projectRoleFor(allow.session({ project: { ...project, owner: true } })), 'owner')
  t.equal(
    projectRoleFor(allow.session({ project: 'none' })),
    'viewer',
    'it only names a project, as the pins of a token'
  )
  t.equal(projectRoleFor(allow.token('write', { project: 'none' })), 'editor')
})
