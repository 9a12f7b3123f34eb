/** Terminals in real containers: what is written and typed, their size, and above all that what runs in them ends. */
import { setTimeout as sleep } from 'node:timers/promises'
import type { ContainerSpec, ContainerTerminal } from 'busbar/api/containers'
import { until } from 'busbar/sdk/testing'
import type { Test } from 'tap'
import { engineTest, type Lab, sharedLab } from './lab.js'
import { bareImage, processesIn, Screen, terminalId } from './terminal-lab.js'

const newProject = sharedLab()
const size = { columns: 80, rows: 24 }
const { signal } = new AbortController()

async function started(lab: Lab, name: string, changes: Partial<ContainerSpec> = {}): Promise<string> {
  const network = await lab.runtime.ensureNetwork({ id: lab.projectId, slug: lab.projectId.slice(0, 8) })
  const id = await lab.runtime.create(lab.spec(name, network, changes))
  await lab.runtime.start(id)
  return id
}

async function opened(
  t: Test,
  lab: Lab,
  containerId: string,
  { shell = 'sh', id = terminalId() }: { readonly shell?: string; readonly id?: string } = {}
): Promise<Screen> {
  const terminal = await lab.runtime.openTerminal(containerId, [shell], { terminalId: id, size, signal })
  t.teardown(async () => await terminal.end().catch(() => {}))
  return new Screen(terminal)
}

const isGone = async (lab: Lab, containerId: string, pattern: RegExp): Promise<void> => {
  await until(
    async () => !(await processesIn(lab.docker, containerId)).some(command => pattern.test(command)),
    `${String(pattern)} has ended`
  )
}

engineTest('what is typed is run, what is written is read, and the size is that of the window', async t => {
  const lab = newProject()
  const containerId = await started(lab, 'typed')
  const screen = await opened(t, lab, containerId)
  await screen.type('echo $((6 * 7)) $TERM; stty size\n')
  await screen.shows(/42 xterm-256color\r\n24 80/)
  await Promise.all([
    screen.terminal.resize({ columns: 100, rows: 30 }),
    screen.terminal.resize({ columns: 132, rows: 43 })
  ])
  await screen.type('stty size\n')
  await screen.shows(/43 132/)
  await screen.type('exit 3\n')
  await until(() => screen.hasEnded, 'the output ends with the program')
  t.equal(await screen.terminal.exitCode(), 3)
  await screen.terminal.end()
  await screen.type('too late\n')
  await screen.terminal.resize(size)
})

engineTest('everything that was started in a terminal ends with it, however it was started', async t => {
  const lab = newProject()
  const containerId = await started(lab, 'started')
  const screen = await opened(t, lab, containerId)
  await screen.type(
    `trap '' HUP; sleep 1001 & (setsid sleep 1002 &); (trap '' HUP; sleep 1003 &); env -i sleep 1004 &\n`
  )
  await screen.type('sleep 1005\n')
  await until(
    async () =>
      (await processesIn(lab.docker, containerId)).filter(one => /sleep 100\d/.test(one)).length === 5,
    'five programs run'
  )
  await screen.terminal.end()
  t.same(
    (await processesIn(lab.docker, containerId)).filter(one => /sleep 100/.test(one)),
    []
  )
  await isGone(lab, containerId, /busbar-terminal/)
  t.ok((await lab.runtime.inspect(containerId))?.status === 'running')
})

engineTest('a program hears that its line is gone, and has time to put its things away', async t => {
  const lab = newProject()
  const containerId = await started(lab, 'hangs-up')
  const screen = await opened(t, lab, containerId)
  await screen.type(`sh -c 'trap "echo saved > /tmp/saved; exit" HUP; while :; do sleep 0.1; done'\n`)
  await until(
    async () => (await processesIn(lab.docker, containerId)).some(one => one.includes('echo saved >')),
    'it runs'
  )
  await screen.terminal.end()
  const lines: string[] = []
  await lab.runtime.exec(containerId, ['cat', '/tmp/saved'], {
    onLine: ({ text }) => lines.push(text),
    signal
  })
  t.same(lines, ['saved'])
})

engineTest('the terminals of one container are told apart', async t => {
  const lab = newProject()
  const containerId = await started(lab, 'apart')
  const [one, two] = [await opened(t, lab, containerId), await opened(t, lab, containerId)]
  await one.type('sleep 2001\n')
  await two.type('sleep 2002 & echo $((1 + 1))\n')
  await two.shows(/\n2\r/)
  await one.terminal.end()
  await isGone(lab, containerId, /sleep 2001/)
  await two.type('echo $((40 + 4))\n')
  await two.shows(/44/)
  t.ok((await processesIn(lab.docker, containerId)).some(command => command === 'sleep 2002'))
})

engineTest('a container with a shell and no other program will do, whichever shell it is', async t => {
  const lab = newProject()
  for (const shell of ['dash', 'bash']) {
    // What the container itself runs lies where no shell looks for it.
    const image = await bareImage(lab, { '/bin/sh': `/bin/${shell}`, '/own/sleep': '/bin/sleep' }, [])
    const containerId = await started(lab, `bare-${shell}`, { image, command: ['/own/sleep', '100000'] })
    const screen = await opened(t, lab, containerId)
    await screen.type('ls || echo "nothing $((1 + 1))"\n')
    await screen.shows(/nothing 2/)
    await screen.type('(while :; do :; done) & (trap "" HUP; : marker; while :; do :; done) &\n')
    await until(
      async () => (await processesIn(lab.docker, containerId)).filter(one => one === 'sh').length === 3,
      'three shells run'
    )
    await screen.terminal.end()
    t.same(
      (await processesIn(lab.docker, containerId)).filter(one => one === 'sh'),
      [],
      shell
    )
  }
})

engineTest('a container without a shell, or without the one that is asked for, says so', async t => {
  const lab = newProject()
  const image = await bareImage(lab, { '/bin/sleep': '/bin/sleep' }, ['/bin/sleep', '100000'])
  const containerId = await started(lab, 'no-shell', { image, command: ['/bin/sleep', '100000'] })
  const open = async (id: string, shell: string) =>
    await lab.runtime.openTerminal(id, [shell], { terminalId: terminalId(), size, signal })
  await t.rejects(open(containerId, 'sh'), {
    status: 502,
    code: 'E_CONTAINER_PROGRAM',
    message: /\bsh\b.*not found/
  })
  await lab.runtime.endTerminal(containerId, terminalId()).then(
    () => t.fail('nothing can be said of it'),
    (error: { code: string }) => t.equal(error.code, 'E_CONTAINER_PROGRAM')
  )
  const other = await started(lab, 'no-bash')
  await t.rejects(open(other, 'bash'), {
    status: 502,
    code: 'E_CONTAINER_PROGRAM',
    message: /bash.*not found/
  })
  await isGone(lab, other, /busbar-terminal/)
  await lab.runtime.stop(other, 0)
  await t.rejects(open(other, 'sh'), { status: 409, code: 'E_CONTAINER_NOT_RUNNING' })
  await lab.runtime.endTerminal(other, terminalId())
  await lab.runtime.endTerminal('nothing-like-this', terminalId())
})

engineTest(
  'a program whose output nobody reads waits, and so does who types for one that does not read',
  async t => {
    const lab = newProject()
    const containerId = await started(lab, 'pressure')
    const terminal = await lab.runtime.openTerminal(containerId, ['sh'], {
      terminalId: terminalId(),
      size,
      signal
    })
    t.teardown(async () => await terminal.end().catch(() => {}))
    const output = terminal.output[Symbol.asyncIterator]()
    await output.next()
    await terminal.write(
      Buffer.from(
        'stty raw -echo; yes 0123456789abcdef | head -c 200000000 | tee -a /dev/tty > /dev/null; echo over\n'
      )
    )
    const before = process.memoryUsage()
    let bytes = 0
    while (bytes < 2_000_000) bytes += ((await output.next()).value as Buffer).length
    await sleep(3000)
    const after = process.memoryUsage()
    t.ok(after.rss - before.rss < 64 * 2 ** 20, 'it is not kept here')
    const runs = (await processesIn(lab.docker, containerId)).some(one => one.startsWith('head -c'))
    t.ok(runs, 'it waits to be read')

    const other = await lab.runtime.openTerminal(containerId, ['sh'], {
      terminalId: terminalId(),
      size,
      signal
    })
    t.teardown(async () => await other.end().catch(() => {}))
    // Raw: a terminal that makes lines drops what is too much.
    await other.write(Buffer.from('stty raw -echo; sleep 3001\n'))
    await until(async () => (await processesIn(lab.docker, containerId)).includes('sleep 3001'), 'it runs')
    let written = 0
    const piece = Buffer.alloc(64 * 1024, 'x')
    const pasting = (async () => {
      for (; written < 10 * 2 ** 20; written += piece.length) await other.write(piece)
    })()
    await sleep(2000)
    t.ok(written < 8 * 2 ** 20, `${written} bytes were taken`)
    await other.end()
    await pasting
    await terminal.end()
    await isGone(lab, containerId, /sleep 3001|head -c/)
  }
)

engineTest('a terminal whose supervisor was killed from within ends all the same', async t => {
  const lab = newProject()
  const containerId = await started(lab, 'killed')
  const screen = await opened(t, lab, containerId)
  await screen.type(
    'kill -9 $(grep -l busbar-terminal /proc/[0-9]*/cmdline | cut -d/ -f3 | grep -v self); sleep 4001\n'
  )
  await until(async () => {
    const commands = await processesIn(lab.docker, containerId)
    return commands.includes('sleep 4001') && !commands.some(one => one.includes('busbar-terminal'))
  }, 'it is gone')
  await screen.terminal.end()
  await isGone(lab, containerId, /sleep 4001/)
})

engineTest('a terminal that somebody has left is ended by its id, and ends with its container', async t => {
  const lab = newProject()
  const containerId = await started(lab, 'left')
  const id = terminalId()
  const screen = await opened(t, lab, containerId, { id })
  await screen.type('sleep 5001\n')
  await until(async () => (await processesIn(lab.docker, containerId)).includes('sleep 5001'), 'it runs')
  await lab.runtime.endTerminal(containerId, terminalId())
  t.ok((await processesIn(lab.docker, containerId)).includes('sleep 5001'), 'another one is not touched')
  await lab.runtime.endTerminal(containerId, id)
  await isGone(lab, containerId, /sleep 5001/)
  await until(() => screen.hasEnded, 'its output ends')

  const other = await opened(t, lab, containerId)
  await lab.runtime.stop(containerId, 0)
  await until(() => other.hasEnded, 'the output ends with the container')
  await t.rejects(other.terminal.end(), { message: /./ })
})

engineTest('neither a full process table nor a missing shell keeps a terminal from being ended', async t => {
  const lab = newProject()
  const containerId = await started(lab, 'full', { processes: 40, readonlyRootfs: false })
  const screen: { readonly terminal: ContainerTerminal } = await opened(t, lab, containerId)
  await screen.terminal.write(
    Buffer.from(
      'rm -f /bin/sh /usr/bin/sh; for n in 1 2 3 4 5 6 7 8 9 10; do for m in 1 2 3 4 5; do sleep 6001 & done; done\n'
    )
  )
  await until(
    async () => (await processesIn(lab.docker, containerId)).filter(one => one === 'sleep 6001').length > 30,
    'the table is full'
  )
  await screen.terminal.end()
  await isGone(lab, containerId, /sleep 6001/)
})
