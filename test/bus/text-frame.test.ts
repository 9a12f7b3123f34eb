import { test } from 'tap'
import { Sender } from 'ws'
import { textFrame } from '../../core/bus/text-frame.js'

test('a text is framed as ws does it, whatever its length and its characters', t => {
  const options = { fin: true, rsv1: false, opcode: 1, mask: false }
  const lengths = [0, 1, 124, 125, 126, 127, 65_533, 65_534, 65_535, 65_536, 100_000]
  for (const character of ['x', 'é', '\u{1f600}', '\ud800'])
    for (const length of lengths) {
      const text = character.repeat(length)
      t.ok(
        textFrame(text).equals(Buffer.concat(Sender.frame(Buffer.from(text), options))),
        `${length} times ${JSON.stringify(character)}`
      )
    }
  t.end()
})
