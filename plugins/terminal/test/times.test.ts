/** How long sessions last, by a clock that is moved. */
import { testClock, until } from 'busbar/sdk/testing'
import { test } from 'tap'
import { requireEngine } from '../../../lab/engine.js'
import { openTerminalLab, TestTerminal } from './terminal-lab.js'

test('a session that nobody needs ends by itself', async t => {
  if (!(await requireEngine(t))) return
  const lab = await openTerminalLab()
  const clock = testClock(new Date())
  await lab.restart({ clock })
  t.teardown(async () => await lab.k.close())
  const ann = await lab.k.as.session('ann')
  /** Moves the time on in steps, with time for whoever is asked by the platform to answer. */
  const pass = async (seconds: number): Promise<void> => {
    for (let passed = 0; passed < seconds; passed += 5) {
      await clock.advance(5000)
      t.equal((await ann.get('/api/version')).status, 200)
    }
  }
  const endOf = async (id: string) => (await lab.ends()).find(end => end.session_id === id)
  /** Its end, some seconds after so many and not before. */
  const endedAfter = async (id: string, seconds: number): Promise<Readonly<Record<string, unknown>>> => {
    await pass(seconds - 10)
    t.equal(await endOf(id), undefined, `it goes on for ${seconds} s`)
    return await until(async () => {
      await pass(5)
      return await endOf(id)
    }, 'the session ends')
  }

  await t.test('a minute after it was made, when nobody attaches to it', async t => {
    const ids = await Promise.all([1, 2, 3, 4, 5].map(async () => await lab.session(ann)))
    t.equal((await ann.post(`${lab.path}/terminal`)).status, 429)
    await clock.advance(59_000)
    t.equal((await ann.post(`${lab.path}/terminal`)).status, 429)
    await clock.advance(1000)
    await t.rejects(TestTerminal.attach(ann, ids[0] ?? ''), /404/)
    await until(async () => {
      await pass(10)
      return (await lab.ends()).length === 5
    }, 'their ends are recorded')
    t.match(
      await lab.ends(),
      ids.map(() => ({ reason: 'unopened', seconds: 0 }))
    )
    t.same(await lab.k.query('select 1 from terminal.session'), [])
  })

  await t.test('a minute after it was left', async t => {
    const id = await lab.session(ann)
    const terminal = await TestTerminal.attach(ann, id)
    terminal.type('sleep 1001\n')
    await lab.runs(/sleep 1001/)
    await terminal.leave()
    await pass(40)
    const again = await TestTerminal.attach(ann, id)
    await again.shows(/sleep 1001/)
    await pass(40)
    t.equal(again.end, undefined)
    await again.leave()
    t.match(await endedAfter(id, 60), { reason: 'left' })
    await lab.gone(/sleep 1001|busbar-terminal/)
    await t.rejects(TestTerminal.attach(ann, id), /404/)
  })

  await t.test('when nothing was typed and nothing written for as long as an admin has set', async t => {
    await lab.k.configure('terminal', { idle_minutes: 2 })
    const id = await lab.session(ann)
    const terminal = await TestTerminal.attach(ann, id)
    terminal.type('echo ready $((1 + 1))\n')
    await terminal.shows(/ready 2/)
    // A client that answers pings is no sign of anybody.
    await pass(110)
    terminal.type('echo still $((2 + 2))\n')
    await terminal.shows(/still 4/)
    t.match(await endedAfter(id, 120), { reason: 'idle' })
    t.same(await terminal.closed(), { code: 1000, reason: '' })
    t.match(terminal.frames, [{ type: 'closed', message: 'session ended', reason: 'idle' }])
    await lab.gone(/busbar-terminal/)
  })

  await t.test('by the time that has gone by, whatever the clock of the machine is set to', async t => {
    await lab.k.configure('terminal', { idle_minutes: 2 })
    const before = (await lab.ends()).length
    const unopened = await lab.session(ann)
    const id = await lab.session(ann)
    const terminal = await TestTerminal.attach(ann, id)
    clock.set(7_200_000)
    await pass(20)
    t.equal(await endOf(id), undefined, 'two hours forward, and nobody was idle for so long')
    clock.set(-86_400_000)
    await t.rejects(TestTerminal.attach(ann, unopened), /404/)
    await pass(10)
    terminal.type('echo ready $((1 + 1))\n')
    await terminal.shows(/ready 2/)
    await terminal.leave()
    t.match(await endedAfter(id, 60), { reason: 'left', seconds: 0 })
    await lab.gone(/busbar-terminal/)
    await until(async () => {
      await pass(5)
      return (await lab.k.query('select 1 from terminal.session')).length === 0
    }, 'nothing of before counts any more')
    t.match(await endOf(unopened), { reason: 'unopened' })
    t.equal((await lab.ends()).length, before + 2)
  })
})
