import { test } from 'tap'
import { growthFault } from '../../../lab/growth.js'
import { hasTooManyInstructions } from '../engines/instruction-bound.js'

const lines = (count: number, line: string): string => `FROM x\n${`${line}\n`.repeat(count - 1)}`

void test('a Dockerfile may have 2000 instructions, however they are written', t => {
  for (const line of [
    'RUN true',
    '  env A=b',
    '\tARG a',
    '\u0085ENV a=b',
    '\u00a0 Env a b',
    'ONBUILD RUN x',
    'CMD["x"]'
  ]) {
    t.notOk(hasTooManyInstructions(lines(2000, line)), JSON.stringify(line))
    t.ok(hasTooManyInstructions(lines(2001, line)), JSON.stringify(line))
  }
  // To one reader or another it may go on in the next line.
  t.ok(hasTooManyInstructions(lines(2001, 'ENV a=b \\\u00a0')))
  t.end()
})

void test('lines that are none do not count', t => {
  for (const line of ['', '# a comment', '  apt-get install \\', 'runs away', 'environment=x', '}'])
    t.notOk(hasTooManyInstructions(lines(9000, line)), line)
  t.end()
})

void test('the time it takes grows with the text alone', async t => {
  for (const unit of [' '.repeat(100), 'RUNS\n', '\n', ' \n ENTRYPOIN', '.'])
    t.equal(
      await growthFault(1_000_000, size => hasTooManyInstructions(unit.repeat(size / unit.length))),
      null,
      JSON.stringify(unit)
    )
})
