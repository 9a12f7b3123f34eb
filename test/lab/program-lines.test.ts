import { PassThrough } from 'node:stream'
import { test } from 'tap'
import { ProgramLines } from '../../lab/program-lines.js'

test('lines of a program are waited for one after another, and those that are not meant are passed over', async t => {
  const output = new PassThrough()
  const lines = new ProgramLines(output, 'the program')
  output.write('noise\nlistening on 1\nre')
  t.equal(await lines.next('where it listens', line => line.startsWith('listening')), 'listening on 1')
  const ready = lines.next('that it is ready')
  output.write('ady\nlater\n')
  t.equal(await ready, 'ready')
  t.equal(await lines.next('more'), 'later')
})

test('a program that ends, or says nothing for too long, ends the wait with what was waited for', async t => {
  const output = new PassThrough()
  const lines = new ProgramLines(output, 'the program')
  await t.rejects(lines.next('that it is ready', undefined, 20), {
    message: 'the program, which was to say that it is ready, did not answer within 0.02 s'
  })
  const ready = lines.next('that it is ready', line => line === 'ready')
  output.end('it is broken\n')
  await t.rejects(ready, { message: 'the program ended before it said that it is ready: it is broken' })
})
