import {
  type Access,
  access as accessPoints,
  allow,
  type ProjectFacts,
  type SignedInCaller,
  type Tx
} from 'busbar/sdk'
import { test } from 'tap'
import { ProjectAccess, reachOf } from '../../core/access/project-access.js'
import type { AccessChange } from '../../core/changes/access-change.js'
import type { Signals } from '../../core/database/listener.js'
import type { Ownership } from '../../core/resources/resources.js'
import { ServiceRegistry } from '../../core/services/registry.js'

const factsOf = (change: Partial<ProjectFacts> = {}): ProjectFacts => ({
  id: 'p',
  ownerId: 'owner',
  shared: false,
  members: { editor: 'editor', viewer: 'viewer' },
  deleting: false,
  ...change
})
const session = (id: string, role: 'admin' | 'member' = 'member'): SignedInCaller => ({
  kind: 'session',
  sessionId: 's',
  user: { id, email: 'u@example.com', username: id, role }
})
const token = (pins: string[] | null): SignedInCaller => ({
  kind: 'token',
  tokenId: 't',
  tokenName: 't',
  scope: 'write',
  pins,
  user: session('owner').user
})

/** Projects and owners in memory, and what was asked of them. */
function setUp() {
  const projects = new Map([['p', factsOf()]])
  const owners = new Map<string, Ownership>([
    ['application/a', { projectId: 'p', parents: {} } as Ownership],
    ['application/b', { projectId: 'q', parents: {} } as Ownership],
    ['deployment/d', { projectId: 'p', parents: { application: 'a' } } as unknown as Ownership],
    ['deployment/e', { projectId: 'p', parents: { application: 'x' } } as unknown as Ownership],
    ['deployment/f', { projectId: 'p', parents: { deployment: 'x' } } as unknown as Ownership]
  ])
  const asked: string[] = []
  const registry = new ServiceRegistry()
  registry.contribute({ plugin: 'projects', run: {} }, accessPoints.projects, 'projects', {
    facts: async (id: string) => {
      asked.push(id)
      return projects.get(id)
    }
  })
  const listeners = new Map<string, (data: string) => void>()
  const sent: unknown[][] = []
  let reconnect = (): void => {}
  const signals: Signals = {
    signal: async (...args) => void sent.push(args),
    onSignal: (topic, listener) => {
      listeners.set(topic, listener)
      return () => {}
    },
    onReconnect: listener => {
      reconnect = listener
      return () => {}
    }
  }
  const committed: (() => void)[] = []
  const access = new ProjectAccess(
    registry,
    {
      ownerOf: async (kind, id) => {
        asked.push(`${kind}/${id}`)
        return owners.get(`${kind}/${id}`)
      }
    },
    signals,
    (_tx, run) => void committed.push(run)
  )
  const told: AccessChange[] = []
  access.watchers.add(change => void told.push(change))
  const hear = (topic: string, data: string): void => listeners.get(topic)?.(data)
  return { access, asked, told, sent, committed, hear, projects, listeners, reconnect: () => reconnect() }
}

const notFound = { refused: { status: 404, code: 'E_NOT_FOUND' } }
const granted = { refused: null, project: 'p' }
const rules = (project: object | string): Exclude<Access, { kind: 'public' }> =>
  ({ kind: 'session', project }) as Exclude<Access, { kind: 'public' }>

test('a rule without a project lets in everywhere and asks for nothing', async t => {
  const { access, asked } = setUp()
  t.same(await access.decide(session('any'), rules('none'), {}), { refused: null, project: undefined })
  t.same(asked, [])
})

test('the facts of a project are asked for once, and again when they have changed', async t => {
  const { access, asked, hear, told } = setUp()
  const decide = async () => await access.decideProject(session('owner'), 'p', 'owner')
  t.same(await decide(), granted)
  t.same(await decide(), granted)
  t.notOk(access.decideProject(session('owner'), 'p', 'owner') instanceof Promise, 'known at once')
  t.same(asked.splice(0), ['p'])
  hear('project-facts', 'other')
  await decide()
  t.same(asked, [], 'those of another project')
  hear('project-facts', 'p')
  await decide()
  t.same(asked.splice(0), ['p'])
  t.same(told, [
    { kind: 'project', id: 'other' },
    { kind: 'project', id: 'p' }
  ])
})

test('a lost connection makes everything be asked for again, and an owner too', async t => {
  const { access, asked, reconnect, told } = setUp()
  const decide = async () =>
    await access.decide(session('owner'), rules({ param: 'id', of: 'application' }), { id: 'a' })
  t.same(await decide(), granted)
  await decide()
  t.same(asked.splice(0), ['application/a', 'p'])
  reconnect()
  await decide()
  t.same(asked.splice(0), ['application/a', 'p'])
  t.same(told, [{ kind: 'all' }])
})

test('a user who changes makes the projects that they are in be asked for again, and no other', async t => {
  const { access, asked, hear, told, listeners } = setUp()
  const topic = [...listeners.keys()].find(one => one !== 'project-facts') ?? ''
  await access.decideProject(session('editor'), 'p', 'viewer')
  asked.splice(0)
  hear(topic, 'user:stranger')
  hear(topic, 'session:editor')
  await access.decideProject(session('editor'), 'p', 'viewer')
  t.same(asked, [])
  hear(topic, 'user:editor')
  await access.decideProject(session('editor'), 'p', 'viewer')
  t.same(asked, ['p'])
  t.same(told, [
    { kind: 'user', id: 'stranger' },
    { kind: 'user', id: 'editor' }
  ])
})

test('who changes a project tells all processes, and forgets it after the commit', async t => {
  const { access, asked, sent, committed } = setUp()
  await access.decideProject(session('owner'), 'p', 'owner')
  asked.splice(0)
  const tx = {} as Tx
  await access.invalidate('p', tx)
  t.same(sent, [['project-facts', 'p', tx]])
  await access.decideProject(session('owner'), 'p', 'owner')
  t.same(asked, [], 'before the commit the old facts count')
  committed[0]?.()
  await access.decideProject(session('owner'), 'p', 'owner')
  t.same(asked, ['p'])
  await access.invalidate('p')
  t.equal(committed.length, 1, 'without a transaction the signal is enough')
  t.equal(sent.length, 2)
})

test('pins are looked at before existence', async t => {
  const { access, asked } = setUp()
  t.match(await access.decideProject(token(['other']), 'p', 'viewer'), {
    refused: { code: 'E_PROJECT_PINNED' }
  })
  t.match(await access.decideProject(token(['other']), 'none', 'viewer'), {
    refused: { code: 'E_PROJECT_PINNED' }
  })
  t.same(asked, [])
  t.same(await access.decideProject(token(['p']), 'p', 'viewer'), granted)
  t.match(await access.decideProject(session('owner'), 'none', 'viewer'), notFound)
  t.match(await access.decideProject(session('stranger'), 'p', 'viewer'), notFound)
})

test('one of a kind is let in by its project, and one that does not exist is not found', async t => {
  const { access, asked } = setUp()
  const decide = async (caller: SignedInCaller, id: string) =>
    await access.decide(caller, rules({ param: 'id', of: 'application' }), { id })
  t.same(await decide(session('owner'), 'a'), granted)
  t.match(await decide(session('owner'), 'none'), notFound)
  t.match(await decide(token(['q']), 'a'), { refused: { code: 'E_PROJECT_PINNED' } })
  t.match(await decide(token(['q']), 'none'), notFound)
  asked.splice(0)
  await decide(session('editor'), 'a')
  t.same(asked, [], 'whose it is is remembered')
  t.match(await access.decide(session('owner'), rules({ param: 'id', of: 'application' }), {}), notFound)
})

test('of several kinds the one that there is one of lets in, and a kind that nobody declares none', async t => {
  const { access, asked } = setUp()
  const decide = async (of: readonly string[], id: string) =>
    await access.decide(session('owner'), rules({ param: 'id', of }), { id })
  t.same(await decide(['application', 'nothing'], 'a'), granted)
  t.same(await decide(['nothing', 'application'], 'a'), granted)
  t.match(await decide(['application', 'nothing'], 'none'), notFound)
  t.match(await decide(['nothing'], 'a'), notFound)
  t.match(
    await access.decide(token(['q']), rules({ param: 'id', of: ['nothing', 'application'] }), { id: 'a' }),
    { refused: { code: 'E_PROJECT_PINNED' } }
  )
  asked.splice(0)
  await decide(['application', 'nothing'], 'a')
  t.same(asked, [], 'whose it is is remembered')
})

test('each id in a path must lie in the project and in what is named before it', async t => {
  const { access } = setUp()
  const chain = { applicationId: 'application', deploymentId: 'deployment', note: undefined }
  const decide = async (applicationId: string, deploymentId: string, caller = session('owner')) =>
    await access.decide(caller, rules({ param: 'id', chain }), {
      id: 'p',
      applicationId,
      deploymentId,
      note: ''
    })
  t.same(await decide('a', 'd'), granted)
  t.match(await decide('b', 'd'), notFound, 'an application of another project')
  t.match(await decide('a', 'e'), notFound, 'a deployment of another application')
  t.match(await decide('none', 'd'), notFound)
  t.match(await decide('a', 'none'), notFound)
  t.same(await decide('a', 'f'), granted, 'one that lies in another of its own kind stands beside it')
  t.match(await decide('a', 'd', session('stranger')), notFound)
  const { access: fresh, asked } = setUp()
  t.match(await fresh.decide(session('owner'), rules({ param: 'id', chain }), { id: 'p' }), notFound)
  t.same(asked, ['p', 'application/'], 'an id that is missing is that of nothing')
  const refused = await access.decide(
    { ...session('viewer') },
    {
      ...allow.token('write', { project: { param: 'id', chain: { applicationId: 'application' } } as never })
    } as never,
    { id: 'p', applicationId: 'none' }
  )
  t.match(refused, { refused: { code: 'E_PROJECT_VIEWER' } }, 'the project decides before the chain')
})

test('who removes themselves needs no more than to see the project', async t => {
  const { access } = setUp()
  const rule = { ...allow.token('write', { project: { param: 'id', self: 'userId' } as never }) } as never
  t.same(await access.decide(session('viewer'), rule, { id: 'p', userId: 'viewer' }), granted)
  t.match(await access.decide(session('viewer'), rule, { id: 'p', userId: 'editor' }), {
    refused: { code: 'E_PROJECT_VIEWER' }
  })
  t.match(await access.decide(session('stranger'), rule, { id: 'p', userId: 'stranger' }), notFound)
})

test('an admin sees all in lists, and a token what it is pinned to', t => {
  t.same(reachOf(session('u')), { callerId: 'u', userId: 'u', pins: null })
  t.same(reachOf(session('u', 'admin')), { callerId: 'u', userId: null, pins: null })
  t.same(reachOf(token(['p'])), { callerId: 'owner', userId: 'owner', pins: ['p'] })
  t.same(reachOf(token(null)), { callerId: 'owner', userId: 'owner', pins: null })
  t.end()
})
