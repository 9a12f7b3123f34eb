import { test } from 'tap'
import { BadDockerfile } from '../dockerfile/bad-dockerfile.js'
import { parseDockerfile } from '../dockerfile/parse-dockerfile.js'
import { planDockerfile } from '../dockerfile/plan.js'
import { checkSize } from '../dockerfile/size-check.js'
import type { BaseImage } from '../dockerfile/stage-walk.js'

/** Why it is refused, with its line; undefined when it is not. */
function refused(text: string, base: BaseImage = {}): string | undefined {
  try {
    checkSize(planDockerfile(parseDockerfile(`FROM x\n${text}`), {}), {}, () => base)
    return undefined
  } catch (error) {
    if (error instanceof BadDockerfile) return `line ${error.line}: ${error.message}`
    throw error
  }
}

const declared = { labelBytes: 0, bytes: 0, shellBytes: 0, ports: 0, volumes: 0 }
const times = (count: number, line: (at: number) => string): string =>
  Array.from({ length: count }, (_, at) => line(at)).join('')
const x = (count: number): string => 'x'.repeat(count)
/** With its length, each variable has its name. */
const pathBytes = 'PATH'.length + 100
const entryBytes = 64
const historyBytes = 128

const longest = { environment: { A: x(65_000) } }

test('a word may have 65000 characters once its variables are put in, and not one more', async t => {
  t.equal(refused('USER $A\n', longest), undefined)
  t.match(refused('USER $A/\n', longest), /^line 2: .* can become longer than 65000 characters/)
})

test('all together may take as long as five of the longest words, and not a character longer', async t => {
  const five = 'USER $A\n'.repeat(5)
  t.equal(refused(five, longest), undefined)
  t.equal(refused(`${five}RUN ${x(100)}\n`, longest), undefined, 'nothing is put into it')
  t.match(refused(`${five}USER x\n`, longest), /^line 7: the instructions up to this one can become too long/)
})

test('a stage may have 1000 variables, with PATH', async t => {
  t.equal(refused(`ENV ${times(999, at => `A${at}= `)}\n`), undefined)
  t.match(refused(`ENV ${times(1000, at => `A${at}= `)}\n`), /^line 2: .* more than 1000 variables/)
  t.match(
    refused(`ARG B\nENV ${times(999, at => `A${at}= `)}\n`),
    /^line 3: .* more than 1000 variables/,
    'an ARG is one'
  )
})

test('an image may have 64 exposed ports and 64 volumes', async t => {
  t.equal(refused('EXPOSE 1-64\n'), undefined)
  t.match(refused('EXPOSE 1-65\n'), /^line 2: the image has 65 exposed ports here, and may have 64/)
  t.equal(refused(`VOLUME ${times(64, at => `/${at} `)}\n`), undefined)
  t.match(refused(`VOLUME ${times(65, at => `/${at} `)}\n`), /^line 2: the image has 65 volumes here/)
  t.match(
    refused('EXPOSE 1-64\nVOLUME /a\nEXPOSE 65\n'),
    /^line 4: the image has 65 exposed ports/,
    'at the line that is one too much'
  )
  t.equal(refused('', { declared: { ...declared, ports: 64, volumes: 64 } }), undefined)
})

test('labels may have 64 KiB, with their names and those of the image that is built upon', async t => {
  const labels = (bytes: number): string => `LABEL a=${x(40_000)}\nLABEL b=${x(bytes - 40_000 - 2)}\n`
  t.equal(refused(labels(65_536)), undefined)
  t.match(refused(labels(65_537)), /^line 3: the labels of the image become larger than 65536 bytes/)
  const base = { declared: { ...declared, labelBytes: 65_534, bytes: 65_534 } }
  t.equal(refused('LABEL a=1\n', base), undefined)
  t.match(refused('LABEL a=12\n', base), /^line 2: the labels of the image become larger/)
})

test('what an image says of itself may have 256 KiB', async t => {
  const of = (bytes: number): BaseImage => ({
    declared: { ...declared, bytes: bytes - pathBytes - 'SHELL'.length - 'USER1'.length }
  })
  t.equal(refused('USER 1\n', of(262_144)), undefined)
  t.match(refused('USER 1\n', of(262_145)), /^line 2: what the image says of itself/)
})

test('labels may be repeated until all steps together have 4 MiB of them, 1 KiB of each the own ones', async t => {
  // With those of the platform a step has 32 KiB: 128 of them are 4 MiB, and FROM is the first.
  const labelled = (bytes: number): BaseImage => ({ declared: { ...declared, labelBytes: bytes, bytes } })
  const steps = (count: number): string => times(count, () => 'RUN x\n')
  t.equal(refused(steps(127), labelled(31 * 1024)), undefined)
  t.match(refused(steps(128), labelled(31 * 1024)), /^line 129: the labels up to here are repeated/)
  t.match(refused(steps(127), labelled(31 * 1024 + 1)), /^line 128: the labels up to here are repeated/)
  // Of one that is set here FROM knows nothing, and each step after it has an entry besides.
  const each = (4 * 2 ** 20 - 1024) / 105
  const own = (more: number): string => `LABEL a=${x(each - 1024 - entryBytes - 1 + more)}\n`
  t.equal(refused(`${own(0)}${steps(104)}`), undefined)
  t.match(refused(`${own(1)}${steps(104)}`), /^line 106: the labels up to here are repeated/)
})

test('steps may repeat 32 MiB all together, with an entry in the history for each', async t => {
  const steps = 200
  const most = 32 * 2 ** 20
  const commands = (last: number): string => `${times(steps - 1, () => 'RUN x\n')}RUN ${x(last)}\n`
  /** FROM, and each RUN with its own entry and those before it. */
  const together = (bytes: number): number => {
    let total = 0
    for (let step = 0; step <= steps; step++)
      total += bytes + pathBytes + 'SHELL'.length + entryBytes + historyBytes + step * (historyBytes + 1)
    return total
  }
  const bytes = Math.floor((most - together(0)) / (steps + 1))
  const base = { declared: { ...declared, bytes } }
  const left = most - together(bytes)
  t.equal(refused(commands(1 + left), base), undefined)
  t.match(
    refused(commands(2 + left), base),
    new RegExp(`^line ${steps + 1}: the ENVs, ARGs, labels and commands up to here are repeated`)
  )
})
