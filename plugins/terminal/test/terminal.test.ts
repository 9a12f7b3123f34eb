/** A terminal as its user has it, in a real container. */
import { test } from 'tap'
import { requireEngine } from '../../../lab/engine.js'
import { openTerminalLab, signIn, type TerminalLab, TestTerminal } from './terminal-lab.js'

test('a terminal', async t => {
  if (!(await requireEngine(t))) return
  const lab: TerminalLab = await openTerminalLab()
  t.teardown(async () => await lab.k.close())
  const ann = await lab.k.as.session('ann')

  await t.test('runs what is typed, shows what is written, and is told of its end', async t => {
    const made = await ann.post(`${lab.path}/terminal`, { shell: 'csh' })
    t.match(made, { status: 201, body: { session_id: /^[0-9a-f]{32}$/, shell: 'sh' } })
    const terminal = await TestTerminal.attach(ann, made.body.session_id)
    terminal.send({ type: 'resize', cols: 101, rows: 31 })
    terminal.send({ type: 'input', data: 'echo $((6 * 7)) $TERM; stty size\n' })
    await terminal.shows(/42 xterm-256color\r\n31 101/)
    terminal.type('exit\n')
    t.same(await terminal.closed(), { code: 1000, reason: '' })
    t.same(terminal.frames, [{ type: 'closed', message: 'session ended', reason: 'exited' }])
    await lab.gone(/busbar-terminal/)
    const records = await lab.k.query(
      `select action, resource_type, resource_id, project_id, user_username, ip_address, details from kernel.audit_log
      where action like 'terminal.%' order by created_at, action desc`
    )
    const who = {
      resource_type: 'application',
      resource_id: lab.applicationId,
      project_id: lab.projectId,
      user_username: 'ann',
      ip_address: '127.0.0.1'
    }
    t.match(records, [
      {
        ...who,
        action: 'terminal.session.started',
        details: { outcome: 'success', session_id: made.body.session_id, shell: 'sh' }
      },
      {
        ...who,
        action: 'terminal.session.ended',
        details: { session_id: made.body.session_id, shell: 'sh', seconds: Number, reason: 'exited' }
      }
    ])
    t.equal(records.length, 2)
    await t.rejects(TestTerminal.attach(ann, made.body.session_id), /404/, 'what has ended is gone')
  })

  await t.test('is taken up again with its last screen, by one client at a time', async t => {
    const id = await lab.session(ann)
    const first = await TestTerminal.attach(ann, id)
    first.type('echo first $((1 + 1)); sleep 1001 &\n')
    await first.shows(/first 2/)
    await t.rejects(TestTerminal.attach(ann, id), /409/)
    await first.leave()
    const again = await TestTerminal.attach(ann, id)
    await again.shows(/^\u001bc[\s\S]*first 2/)
    t.notMatch(again.text, /\u001b\[6n/, 'what would be answered a second time is left out')
    again.type('echo again $((2 + 2))\n')
    await again.shows(/again 4/)
    // A full-screen program draws itself anew, although the window is as large as before.
    again.send({ type: 'resize', cols: 80, rows: 24 })
    again.type(
      `sh -c 'printf "\\033[?1049h"; trap "echo size \\$(stty size)" WINCH; while :; do sleep 0.1; done'\n`
    )
    await again.shows(/\u001b\[\?1049h/)
    await again.leave()
    const third = await TestTerminal.attach(ann, id)
    await third.shows(/^\u001bc/)
    third.send({ type: 'resize', cols: 80, rows: 24 })
    await third.shows(/size 24 80/)
    third.type('\u0003exit\n')
    third.type('exit\n')
    await third.closed()
    await lab.gone(/sleep 1001/)
  })

  await t.test('takes what is no frame without harm', async t => {
    const id = await lab.session(ann)
    const garbage = await TestTerminal.attach(ann, id)
    garbage.type('echo kept $((3 + 3))\n')
    await garbage.shows(/kept 6/)
    for (const frame of [
      null,
      [],
      'words',
      { type: 'resize', cols: 0, rows: 0 },
      { type: 'resize', cols: 1e9, rows: 24 },
      { type: 'resize', cols: '80', rows: 24 },
      { type: 'input', data: 5 },
      { type: '__proto__', data: 'x' },
      { type: 'closed' }
    ])
      garbage.send(JSON.stringify(frame))
    garbage.send({ type: 'resize', cols: 120, rows: 40 })
    garbage.type('stty size\n')
    await garbage.shows(/40 120/)
    garbage.send('{"type": "input"')
    t.equal((await garbage.closed()).code, 1007)
    const large = await TestTerminal.attach(ann, id)
    large.send({ type: 'input', data: 'x'.repeat(10 * 2 ** 20) })
    t.equal((await large.closed()).code, 1009)
    const last = await TestTerminal.attach(ann, id)
    await last.shows(/kept 6/)
    last.type('exit\n')
    await last.closed()
  })

  await t.test('is nobody else’s', async t => {
    const { k } = lab
    const id = await lab.session(ann)
    const admin = await k.as.session()
    await t.rejects(TestTerminal.attach(k.as.anonymous(), id), /401/)
    await t.rejects(TestTerminal.attach(await k.as.token('write', { user: 'ann' }), id), /403/)
    await t.rejects(TestTerminal.attach(admin, id), /404/)
    await t.rejects(
      TestTerminal.attach(await signIn(lab.k, 'ann'), id),
      /404/,
      'nor for another sign-in of the same user'
    )
    await t.rejects(TestTerminal.attach(ann, id, { origin: 'https://evil.example.com' }), /403/)
    await t.rejects(TestTerminal.attach(ann, '0'.repeat(32)), /404/)
    await t.rejects(TestTerminal.attach(ann, 'nothing'), /400/)
    const own = await TestTerminal.attach(ann, id, { origin: k.url })
    own.type('exit\n')
    await own.closed()
  })

  await t.test('needs a shell that is there', async t => {
    t.match(await ann.post(`${lab.path}/terminal`, { shell: 'fish' }), {
      status: 502,
      body: { code: 'E_TERMINAL_NO_SHELL', error: /has no fish: ask for sh/ }
    })
    t.match(await ann.post(`${lab.path}/terminal`, { shell: 5 }), { status: 400, body: { field: 'shell' } })
  })

  await t.test('is one of five that a user may have', async t => {
    const ids = [
      await lab.session(ann),
      await lab.session(ann),
      await lab.session(ann),
      await lab.session(ann)
    ]
    const terminals = [await TestTerminal.attach(ann, ids[0] ?? ''), await lab.open(ann)]
    t.match(await ann.post(`${lab.path}/terminal`), {
      status: 429,
      headers: { 'content-type': /json/ },
      body: { code: 'E_TERMINAL_LIMIT', error: 'terminal session limit reached' }
    })
    const admin = await lab.k.as.session()
    const other = await lab.open(admin)
    for (const terminal of [...terminals, other]) terminal.type('exit\n')
    for (const terminal of [...terminals, other]) await terminal.closed()
    await lab.session(ann)
  })
})
