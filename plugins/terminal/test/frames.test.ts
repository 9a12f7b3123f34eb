import { test } from 'tap'
import { readClientFrame } from '../client-frame.js'
import { overdueReason } from '../overdue.js'
import { closedFrame, outputFrame } from '../server-frame.js'
import { shellOf } from '../shells.js'

const frame = (value: unknown) => readClientFrame(JSON.stringify(value))
const typed = (data: unknown): string | undefined => {
  const read = frame({ type: 'input', data })
  return read.kind === 'input' ? read.data.toString() : undefined
}

test('what is typed is base64 or stands as it is', t => {
  t.equal(typed('bHMgLWwK'), 'ls -l\n')
  t.equal(typed('4oKs'), '€')
  t.equal(typed('ls -l\n'), 'ls -l\n')
  t.equal(typed('exit\n'), 'exit\n')
  t.equal(typed('a'), 'a')
  t.equal(typed('\u001b[A'), '\u001b[A')
  t.equal(typed(''), '')
  t.equal(typed('bHMgLWw='), 'ls -l')
  t.equal(typed('bHMg=WwK'), 'bHMg=WwK', 'padding stands at the end')
  for (const data of [undefined, null, 5, {}, ['a']]) t.equal(typed(data), undefined)
  t.end()
})

test('a size that no window has is ignored', t => {
  t.same(frame({ type: 'resize', cols: 132, rows: 43 }), { kind: 'resize', size: { columns: 132, rows: 43 } })
  for (const cols of [0, -1, 1e9, 1001, 1.5, '80', null, undefined, Number.NaN])
    t.same(frame({ type: 'resize', cols, rows: 24 }), { kind: 'ignored' }, String(cols))
  t.same(frame({ type: 'resize', cols: 80, rows: 0 }), { kind: 'ignored' })
  t.end()
})

test('what is no JSON is told from JSON that says nothing', t => {
  for (const text of ['', 'ls', '{"type":', '\u0000', '{"type":"input"}}'])
    t.same(readClientFrame(text), { kind: 'malformed' }, text)
  for (const value of [
    null,
    1,
    'input',
    [],
    {},
    { type: 'paste', data: 'x' },
    { type: 'input' },
    { data: 'x' }
  ])
    t.same(frame(value), { kind: 'ignored' }, JSON.stringify(value))
  t.end()
})

test('frames of the server are as clients expect them', t => {
  t.same(JSON.parse(outputFrame(Buffer.from('€\n'))), { type: 'output', data: '4oKsCg==' })
  t.same(JSON.parse(closedFrame('idle')), { type: 'closed', message: 'session ended', reason: 'idle' })
  t.end()
})

test('a session is over a minute after it was left, and when nothing has happened in it', t => {
  const times = { unattendedSince: null, lastActive: 0 }
  t.equal(overdueReason(times, 1_799_999, 1_800_000), null)
  t.equal(overdueReason(times, 1_800_000, 1_800_000), 'idle')
  t.equal(overdueReason({ unattendedSince: 1000, lastActive: 50_000 }, 60_999, 1_800_000), null)
  t.equal(overdueReason({ unattendedSince: 1000, lastActive: 60_999 }, 61_000, 1_800_000), 'left')
  t.end()
})

test('a shell that is not known is sh', t => {
  t.equal(shellOf('bash'), 'bash')
  for (const name of [undefined, null, '', 'rm -rf /', '/bin/bash', 'constructor'])
    t.equal(shellOf(name), 'sh')
  t.end()
})
