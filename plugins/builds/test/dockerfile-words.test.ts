import { test } from 'tap'
import { BadDockerfile } from '../dockerfile/bad-dockerfile.js'
import { exposedPorts } from '../dockerfile/exposed-ports.js'
import { readFlags } from '../dockerfile/flags.js'
import type { StageInstruction } from '../dockerfile/instruction.js'
import { StageSize } from '../dockerfile/stage-size.js'
import { wordBound } from '../dockerfile/word-bound.js'

const refuse = (reason: string): never => {
  throw new BadDockerfile(1, reason)
}
const plain = (keyword: string, text: string): StageInstruction => ({ kind: 'plain', keyword, text })

test('ports are counted with both ends of their ranges, and a range that ends before it begins as one', async t => {
  for (const [text, count] of [
    ['', 0],
    ['80', 1],
    ['0', 1],
    ['80 443/tcp', 2],
    ['8000-8000', 1],
    ['8000-8001', 2],
    ['8000-8010/udp', 11],
    ['8010-8000', 1],
    ['1:1-3:80', 1],
    ['80\n81', 2]
  ] as const)
    t.equal(exposedPorts(text, refuse), count, JSON.stringify(text))
})

test('quotes around the value of a flag are taken off where there is something between them', async t => {
  const chownOf = (text: string): string | undefined =>
    readFlags('COPY', `--chown=${text} a b`, 1).flags.get('chown')
  t.equal(chownOf('"1"'), '1')
  t.equal(chownOf("'a:b'"), 'a:b')
  t.equal(chownOf('1'), '1')
  t.equal(chownOf('10'), '10')
  t.equal(chownOf('101'), '101', 'it ends as it begins')
  t.equal(chownOf(''), '')
  for (const text of ['""', "''", '"1', '1"', `"1'`, '"'])
    t.throws(() => chownOf(text), { message: /^the value of --chown is / }, text)
  t.throws(() => readFlags('COPY', '--from="a" a b', 1), {
    message: /^the value of --from is .*: write it without quotes and escapes/
  })
})

test('a flag without a value, one that is given twice and one that is not known are refused', async t => {
  const refused = (keyword: string, text: string, message: RegExp | string): void => {
    t.throws(() => readFlags(keyword, text, 7), { line: 7, message }, text)
  }
  refused('COPY', '--from a b', '--from has no value: write --from=value in one word')
  refused('COPY', '--from=a --from=b c d', '--from is given twice: leave one')
  refused('COPY', '--to=a c d', /^COPY has no flag .*: it has --from, --chown$/)
  refused('ENV', '--a=b', /^ENV has no flag .*: remove it$/)
  t.throws(() => readFlags('RUN', '--mount=type=cache true', 7), {
    line: 7,
    message: 'the --mount option of RUN'
  })
  const { flags, rest } = readFlags('COPY', '  --from=a   --chown=b=c d e', 7)
  t.same(
    [...flags],
    [
      ['from', 'a'],
      ['chown', 'b=c']
    ]
  )
  t.equal(rest, 'd e')
})

test('in a word of a form that is not known, each variable counts with its own length where its name is plain', async t => {
  const lengths = {
    of: (name: string) => ({ A: 100, B: 10, Aa: 20 })[name] ?? 0,
    longest: () => 1000
  }
  const bound = (text: string): number => wordBound(text, lengths, '\\')
  const bytes = (text: string): number => Buffer.byteLength(text)
  t.equal(bound('plain é'), bytes('plain é'), 'nothing is put in')
  t.equal(bound('x$A'), 101, 'a form that is known')
  for (const [text, more] of [
    ['${A#x}', 100],
    ['${B#x}', 10],
    ['${A#x}$B', 110],
    ['${A#x}$A', 200],
    ['${A#x}${Aa#x}', 120],
    ['${A#x}$N', 100],
    ['${A#x}$1', 1100],
    ['${A#x}$', 1100],
    ['${A#x}$Aé', 1100],
    ['${A#x}$é', 1100],
    ['${@#x}', 1000]
  ] as const)
    t.equal(bound(text), bytes(text) + more, text)
  for (const [text, more] of [
    ['${A/x/yy}', 100],
    ['${A//x/yy}', 100]
  ] as const)
    t.equal(bound(text), (bytes(text) + more) ** 2, 'what is replaced may be there many times')
  t.equal(bound('${B/x/yy}${B/x/yy}'), (bytes('${B/x/yy}${B/x/yy}') + 20) ** 3)
})

test('an ENV counts for its own name, and for every name where that is computed', async t => {
  const outer = { of: () => 0, longest: () => 0 }
  const size = StageSize.upon(undefined, outer)
  const apply = (keyword: string, text: string): number => size.apply(plain(keyword, text), '\\', refuse)
  t.equal(size.variables, 1, 'PATH')
  t.equal(size.longest(), size.of('PATH'))
  t.equal(apply('ENV', 'A=12345'), 6)
  t.equal(size.of('A'), 5)
  t.equal(size.of('B'), 0)
  t.equal(size.variables, 2)
  apply('LABEL', 'B=123')
  t.equal(size.of('B'), 0, 'a label is no variable')
  t.equal(size.labelBytes, 4)
  apply('LABEL', 'B=1')
  t.equal(size.labelBytes, 2, 'it takes the place of the one before')
  t.equal(apply('ENV', '$A=1234567'), 12)
  t.equal(size.of('B'), 7, 'it may be the one that was set')
  t.equal(size.of('A'), 7)
  apply('ENV', '$A=1')
  t.equal(size.of('B'), 7, 'the longest of all')
  t.equal(size.variables, 3)
  t.equal(StageSize.upon(size, outer).of('B'), 7, 'also in a stage upon it')
})
