import { test } from 'tap'
import { wholeLinesAtEnd } from '../records/log-end.js'

test('the end of a log is whole lines, as many as fit', async t => {
  t.equal(wholeLinesAtEnd('a\nb\n', 4), 'a\nb\n', 'all of it')
  t.equal(wholeLinesAtEnd('a\nb\n', 3), 'b\n', 'a line that would begin before it is left out')
  t.equal(wholeLinesAtEnd('a\nb\n', 2), 'b\n', 'one that begins just there is whole')
  t.equal(wholeLinesAtEnd('a\nb\n', 1), '', 'none fits')
  t.equal(wholeLinesAtEnd('ä\nä\n', 5), 'ä\n', 'bytes count, and no character is torn')
  t.equal(wholeLinesAtEnd('', 5), '')
})
