import { test } from 'tap'
import { growthFault } from '../../../lab/growth.js'
import { BadDockerfile } from '../dockerfile/bad-dockerfile.js'
import { parseDockerfile } from '../dockerfile/parse-dockerfile.js'
import { planDockerfile } from '../dockerfile/plan.js'
import { remoteAdds } from '../dockerfile/remote-files.js'

/** Why it is refused, with its line; undefined when it is not. */
function refusal(run: () => unknown): string | undefined {
  try {
    run()
    return undefined
  } catch (error) {
    if (error instanceof BadDockerfile) return `line ${error.line}: ${error.message}`
    throw error
  }
}

const plan = (text: string, buildArgs: Readonly<Record<string, string>> = {}) =>
  planDockerfile(parseDockerfile(text), buildArgs)

/** Each line holds the one before it twice. */
const doubled = (keyword: string, times: number, first = 'x'.repeat(100)): string =>
  [
    `${keyword} V0=${first}\n`,
    ...Array.from({ length: times }, (_, at) => `${keyword} V${at + 1}=$V${at}$V${at}\n`)
  ].join('')

test('an ARG before the first FROM that would become long is refused with its line, before it is made', async t => {
  t.equal(
    refusal(() => plan(`${doubled('ARG', 9)}FROM x\n`)),
    undefined,
    '51 200 characters'
  )
  const reason = /^line 11: .* becomes longer than 65000 characters with its variables put in: /
  t.match(
    refusal(() => plan(`${doubled('ARG', 10)}FROM x\n`)),
    reason
  )
  t.match(
    refusal(() => plan(`${doubled('ARG', 200)}FROM x\n`)),
    reason,
    'whatever follows'
  )
  for (const word of ['"$A"', '${A}', '${N:-$A}', '${A:+$A}', "'x'$A", '\\$$A'])
    t.match(
      refusal(() => plan(`ARG A=${'x'.repeat(1000)}\nARG B=${word.repeat(66)}\nFROM x\n`)),
      /^line 2: .* becomes longer/,
      word
    )
  t.match(
    refusal(() => plan(`${doubled('ARG', 9)}FROM x:$V9$V9\n`)),
    /^line 11: .* becomes longer/
  )
  t.match(
    refusal(() => plan('ARG A\nARG B=$A$A\nFROM x\n', { A: 'x'.repeat(40_000) })),
    /^line 2: .* becomes longer/,
    'a value of the application counts'
  )
})

test('what the words of a Dockerfile become all together is bounded', async t => {
  const copies = (count: number): string =>
    `ARG A=${'x'.repeat(50_000)}\n${Array.from({ length: count }, (_, at) => `ARG B${at}=$A\n`).join('')}FROM x\n`
  t.equal(
    refusal(() => plan(copies(15))),
    undefined
  )
  t.match(
    refusal(() => plan(copies(1000))),
    /^line 21: the words of this Dockerfile become longer than 1048576 characters/
  )
})

test('a variable of a stage that would become long is not known, and an ADD that needs it is refused', async t => {
  const adds = (text: string) => refusal(() => remoteAdds(plan(text), {}, () => ({ environment: {} })))
  for (const keyword of ['ENV', 'ARG']) {
    t.equal(adds(`FROM x\n${doubled(keyword, 9)}ADD http://h/$V5 /x\n`), undefined)
    t.match(
      adds(`FROM x\n${doubled(keyword, 60)}ADD http://h/$V60 /x\n`),
      /^line 63: the address .* holds a variable whose value is not certain/
    )
    t.equal(adds(`FROM x\n${doubled(keyword, 60)}ADD http://h/a /x\n`), undefined, 'others are')
  }
  const copies = Array.from({ length: 500 }, (_, at) => `ENV B${at}=$A\n`).join('')
  t.match(
    adds(`FROM x\nENV A=${'x'.repeat(50_000)}\n${copies}ADD http://h/$B499 /x\n`),
    /^line 503: .* not certain/
  )
})

test('the time that names of stages and variables take grows with the length of the Dockerfile', async t => {
  const lines = (count: number, line: (at: number) => string): string =>
    Array.from({ length: count }, (_, at) => line(at)).join('')
  t.equal(await growthFault(1900, count => plan(lines(count, at => `FROM x AS s${at}\n`))), null, 'stages')
  t.equal(
    await growthFault(30_000, count =>
      remoteAdds(
        plan(`FROM x\nENV ${'$A= '.repeat(count / 2)}\nENV ${lines(count / 4, at => `A${at}= `)}\n`),
        {},
        () => ({ environment: Object.fromEntries(Array.from({ length: count }, (_, at) => [`E${at}`, ''])) })
      )
    ),
    null,
    'names of variables that are computed'
  )
})
