/** Who does not read, on either side, makes the other one wait, and nobody else. */
import { setTimeout as sleep } from 'node:timers/promises'
import { until } from 'busbar/sdk/testing'
import { test } from 'tap'
import { requireEngine } from '../../../lab/engine.js'
import { openTerminalLab, TestTerminal } from './terminal-lab.js'

const mebibyte = 2 ** 20

/** The most that the process has grown, looked at until the returned function is called. */
function growth(): () => number {
  const before = process.memoryUsage.rss()
  let most = 0
  const timer = setInterval(() => {
    most = Math.max(most, process.memoryUsage.rss() - before)
  }, 50)
  return () => {
    clearInterval(timer)
    return most
  }
}

test('pressure', async t => {
  if (!(await requireEngine(t))) return
  const lab = await openTerminalLab()
  t.teardown(async () => await lab.k.close())
  const ann = await lab.k.as.session('ann')

  await t.test(
    '200 MB of output wait for a client that has stopped reading, and for nobody else',
    async t => {
      const id = await lab.session(ann)
      const terminal = await TestTerminal.attach(ann, id)
      await terminal.shows(/#/)
      terminal.type('yes 0123456789abcdef | head -c 200000000; echo all $((1 + 1))\n')
      await terminal.shows(/abcdef\r\n0123/)
      terminal.socket.pause()
      const grown = growth()
      await sleep(3000)
      const other = await lab.open(ann)
      other.type('echo other $((2 + 2))\n')
      await other.shows(/other 4/)
      t.ok(grown() < 96 * mebibyte, 'nothing of it is kept here')
      await lab.runs(/head -c 200000000/)
      // Its owner comes back to the last screen, and stops it.
      terminal.socket.terminate()
      const again = await until(
        async () => await TestTerminal.attach(ann, id).catch(() => undefined),
        'the place is free'
      )
      await again.shows(/abcdef/)
      again.type('\u0003')
      again.type('echo stopped $((3 + 3))\n')
      await again.shows(/stopped 6/, 60_000)
      t.notMatch(again.text, /all 2/)
      for (const one of [again, other]) {
        one.type('exit\n')
        await one.closed()
      }
    }
  )

  await t.test('a paste of 10 MB waits for a program that does not read it, and for nobody else', async t => {
    const id = await lab.session(ann)
    const terminal = await TestTerminal.attach(ann, id)
    terminal.type('stty raw -echo; sleep 1001\n')
    await lab.runs(/sleep 1001/)
    const grown = growth()
    const piece = Buffer.alloc(40 * 1024, 'x').toString('base64')
    for (let sent = 0; sent < 10 * mebibyte; sent += 40 * 1024) terminal.send({ type: 'input', data: piece })
    await sleep(3000)
    t.ok(terminal.socket.bufferedAmount > 4 * mebibyte, 'most of it is still with the client')
    t.ok(grown() < 96 * mebibyte)
    const other = await lab.open(ann)
    other.type('echo other $((2 + 2)); exit\n')
    await other.closed()
    t.match(other.text, /other 4/)
    // Nor is it an obstacle to the end.
    await lab.k.disable('terminal')
    await terminal.closed()
    await lab.gone(/sleep 1001|busbar-terminal/)
    await lab.k.enable('terminal')
  })

  await t.test('frames without end keep nobody else from being answered', async t => {
    const flood = await lab.open(ann)
    let isOver = false
    const flooding = (async () => {
      const frame = JSON.stringify({ type: 'nothing', data: 'x'.repeat(60_000) })
      while (!isOver) {
        flood.send(frame)
        flood.send({ type: 'resize', cols: 80 + Math.round(Math.random() * 50), rows: 24 })
        if (flood.socket.bufferedAmount > mebibyte) await sleep(1)
      }
    })()
    const other = await lab.open(ann)
    other.type('echo other $((2 + 2)); exit\n')
    await other.closed()
    t.match(other.text, /other 4/)
    t.equal((await ann.get(lab.path)).status, 200)
    isOver = true
    await flooding
    flood.type('exit\n')
    await flood.closed()
  })
})
