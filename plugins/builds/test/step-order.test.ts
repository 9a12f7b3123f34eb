import { test } from 'tap'
import type { StageInstruction } from '../dockerfile/instruction.js'
import { inCacheOrder } from '../dockerfile/step-order.js'

const copy = (destination: string): StageInstruction => ({
  kind: 'copy',
  keyword: 'COPY',
  flags: [],
  sources: ['.'],
  destination,
  isJson: false
})
const plain = (keyword: string): StageInstruction => ({ kind: 'plain', keyword, text: '' })
const nameOf = (instruction: StageInstruction): string =>
  instruction.kind === 'copy'
    ? instruction.destination
    : instruction.kind === 'plain'
      ? instruction.keyword
      : instruction.kind
const ordered = (...instructions: readonly StageInstruction[]): string[] =>
  inCacheOrder(instructions).map(nameOf)

test('what only notes something comes before the copies that it follows', async t => {
  t.same(ordered(copy('a'), copy('b'), plain('CMD'), plain('EXPOSE')), ['CMD', 'EXPOSE', 'a', 'b'])
  t.same(ordered(plain('RUN'), copy('a'), plain('USER')), ['RUN', 'USER', 'a'])
})

test('nothing passes what could tell the difference', async t => {
  for (const keyword of ['RUN', 'ENV', 'WORKDIR', 'SHELL', 'VOLUME'])
    t.same(ordered(copy('a'), plain(keyword), copy('b'), plain('CMD')), ['a', keyword, 'CMD', 'b'], keyword)
  t.same(ordered(copy('a'), { kind: 'arg', declarations: [{ name: 'X' }] }, plain('CMD')), [
    'a',
    'arg',
    'CMD'
  ])
  t.same(
    ordered(copy('a'), { kind: 'onbuild', trigger: { kind: 'plain', keyword: 'CMD', text: '' } }),
    ['a', 'onbuild'],
    'a trigger is no note, whatever it triggers'
  )
})
