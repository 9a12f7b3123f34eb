/** What ends a terminal besides its user, and that nothing of it runs on then. */
import { createTestKernel, type TestClient, until } from 'busbar/sdk/testing'
import { type Test, test } from 'tap'
import { requireEngine } from '../../../lab/engine.js'
import {
  deployed,
  imageWithoutShell,
  openTerminalLab,
  signIn,
  type TerminalLab,
  TestTerminal
} from './terminal-lab.js'

interface Busy {
  readonly id: string
  readonly name: string
  readonly terminal: TestTerminal
}

/** A terminal of this client in which a program runs that does not mind its line being gone. */
async function busy(lab: TerminalLab, client: TestClient, name: string): Promise<Busy> {
  const id = await lab.session(client)
  const terminal = await TestTerminal.attach(client, id)
  terminal.type(`trap '' HUP; sleep ${name}\n`)
  await lab.runs(new RegExp(`sleep ${name}`))
  return { id, name, terminal }
}

/** `container`: where nothing may be left; absent where that is gone itself. */
async function hasEnded(
  t: Test,
  lab: TerminalLab,
  { id, name, terminal }: Busy,
  { code, reason, container }: { readonly code: number; readonly reason: string; readonly container?: string }
): Promise<void> {
  t.equal((await terminal.closed()).code, code, `${reason} closes with ${code}`)
  if (container !== undefined) await lab.gone(new RegExp(`sleep ${name}`), container)
  const end = await until(
    async () => (await lab.ends()).find(one => one.session_id === id),
    'the end is in the audit log'
  )
  t.match(end, { shell: 'sh', seconds: Number, reason })
  await until(
    async () => (await lab.k.query('select 1 from terminal.session where id = $1', [id])).length === 0,
    'nothing is left of it'
  )
}

test('a terminal ends at once', async t => {
  if (!(await requireEngine(t))) return
  const lab = await openTerminalLab()
  t.teardown(async () => await lab.k.close())
  const { k } = lab
  const ann = await k.as.session('ann')
  const members = `/api/projects/${lab.projectId}/members`
  const letIn = async (role: string): Promise<void> => {
    t.equal((await ann.put(members, { email: (await k.user('ed')).email, role })).status, 200)
  }
  const container = await lab.container()
  const lost = { code: 1008, reason: 'access-lost', container }

  await t.test('when its user may not work in the project any more', async t => {
    const ed = await k.as.session('ed')
    t.equal((await ed.post(`${lab.path}/terminal`)).status, 404)
    await letIn('viewer')
    t.equal((await ed.post(`${lab.path}/terminal`)).status, 403)
    await letIn('editor')
    const lowered = await busy(lab, ed, '1001')
    const own = await busy(lab, ann, '1002')
    await letIn('viewer')
    await hasEnded(t, lab, lowered, lost)
    t.equal(own.terminal.end, undefined, 'that of another user goes on')
    await letIn('editor')
    const removed = await busy(lab, ed, '1003')
    t.equal((await ann.delete(`${members}/${ed.userId ?? ''}`)).status, 200)
    await hasEnded(t, lab, removed, lost)
    own.terminal.type('\u0003exit\n')
    await own.terminal.closed()
  })

  await t.test('when they may not any more, as another process was told', async t => {
    const ed = await k.as.session('ed')
    await letIn('editor')
    const held = await busy(lab, ed, '1004')
    const other = await createTestKernel({ state: k.state })
    t.teardown(async () => await other.stop())
    const annThere = await other.as.session('ann')
    t.equal((await annThere.delete(`${members}/${ed.userId ?? ''}`)).status, 200)
    await hasEnded(t, lab, held, lost)
  })

  await t.test('when the sign-in that opened it ends, also while nobody is attached', async t => {
    const leaving = await signIn(k, 'ann')
    const attached = await busy(lab, leaving, '2001')
    const left = await busy(lab, leaving, '2002')
    await left.terminal.leave()
    t.equal((await leaving.post('/api/auth/logout')).status, 200)
    await hasEnded(t, lab, attached, lost)
    await hasEnded(t, lab, left, { ...lost, code: left.terminal.end?.code ?? 0 })
  })

  await t.test('when its user is deleted', async t => {
    await letIn('editor')
    const deleted = await busy(lab, await signIn(k, 'ed'), '3001')
    const { id } = await k.user('ed')
    t.equal((await (await k.as.session()).delete(`/api/users/${id}`)).status, 200)
    await hasEnded(t, lab, deleted, lost)
  })

  await t.test('when terminals are turned off, and can be opened when they are on again', async t => {
    const off = await busy(lab, ann, '4001')
    await k.disable('terminal')
    await hasEnded(t, lab, off, { code: 1001, reason: 'plugin-stopped', container })
    t.match(await ann.post(`${lab.path}/terminal`), { status: 404, body: { code: 'E_PLUGIN_OFF' } })
    await k.enable('terminal')
    const again = await lab.open(ann)
    again.type('exit\n')
    await again.closed()
  })

  await t.test('when another container serves, and when its own stops', async t => {
    const replaced = await busy(lab, ann, '5001')
    await deployed(lab, ann, 'reload')
    await hasEnded(t, lab, replaced, { code: 1000, reason: 'container-replaced' })
    t.not(await lab.container(), container)
    const stopped = await busy(lab, ann, '5002')
    t.equal((await ann.post(`${lab.path}/stop`)).status, 200)
    await hasEnded(t, lab, stopped, { code: 1000, reason: 'container-stopped' })
    t.match(await ann.post(`${lab.path}/terminal`), {
      status: 409,
      body: { code: 'E_TERMINAL_NOT_RUNNING', remedy: 'start the application' }
    })
    t.equal((await ann.post(`${lab.path}/start`)).status, 200)
  })

  await t.test('when its application is deleted', async t => {
    const deleted = await busy(lab, ann, '6001')
    t.equal((await ann.delete(lab.path)).status, 200)
    await hasEnded(t, lab, deleted, { code: 1000, reason: 'application-deleted' })
  })

  await t.test('and is refused where there is no container, or none with a shell', async t => {
    const make = async (name: string, image: string): Promise<string> => {
      const { body } = await ann.post(`/api/projects/${lab.projectId}/applications`, {
        name,
        type: 'image',
        build_type: 'image',
        source_image: image
      })
      return `/api/projects/${lab.projectId}/applications/${body.id as string}`
    }
    t.match(await ann.post(`${await make('new', 'busybox:lab')}/terminal`), {
      status: 409,
      body: { code: 'E_TERMINAL_NO_CONTAINER', remedy: 'deploy it first' }
    })
    const path = await make('bare', await imageWithoutShell(t))
    await deployed({ path }, ann)
    t.match(await ann.post(`${path}/terminal`), {
      status: 502,
      body: {
        code: 'E_TERMINAL_NO_SHELL',
        error: /the container has no shell \(sh\).*build the image from a base with one/
      }
    })
    t.same(await k.query('select 1 from terminal.session'), [])
  })
})
