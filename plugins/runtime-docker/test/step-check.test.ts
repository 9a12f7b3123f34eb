import { Readable } from 'node:stream'
import type { GeneratedSource } from 'busbar/api/images'
import { test } from 'tap'
import { pack } from 'tar-stream'
import { withSourceLine } from '../build-failure.js'
import { StepCheck } from '../step-check.js'
import { engineTest, startLab } from './lab.js'

const source = (...texts: readonly string[]): GeneratedSource => ({
  name: 'web/Dockerfile',
  steps: texts.map((text, index) => ({
    text,
    shown: `shown ${text}`,
    line: index + 2,
    sourceLine: (index + 1) * 10
  }))
})

test('words of the engine that differ from what was handed over end the build, whatever else is printed', async t => {
  const id = ' ---> 0123456789ab\n'
  const running = ' ---> Running in 0123456789ab\n'
  const cases: ReadonlyArray<readonly [title: string, said: readonly string[], ends: 'well' | RegExp]> = [
    ['the same', ['Step 1/2 : FROM x', '\n', id, 'Step 2/2 : RUN y', '\n', running, 'output\n', id], 'well'],
    ['with its newline', ['Step 1/2 : FROM x\n', id, 'Step 2/2 : RUN y\n', id], 'well'],
    [
      'another image',
      ['Step 1/2 : FROM victim', '\n', id],
      /line 10 of web\/Dockerfile .*read "Step 1\/2 : FROM victim" where "FROM x"/
    ],
    ['one step more', ['Step 1/3 : FROM x', '\n', id], /line 10/],
    ['one step less', ['Step 1/1 : FROM x', '\n', id], /line 10/],
    ['a space more', ['Step 1/2 : FROM  x'], /line 10/],
    ['a step that is left out', ['Step 1/2 : FROM x', '\n', id], /the end of the build.* where "RUN y"/],
    [
      'a step after the last',
      ['Step 1/2 : FROM x', id, 'Step 2/2 : RUN y', id, 'Step 3/2 : RUN z'],
      /the end of the build/
    ],
    [
      'output that looks like a step',
      [
        'Step 1/2 : FROM x',
        '\n',
        id,
        'Step 2/2 : RUN y',
        '\n',
        running,
        'Step 1/5 : FROM z\n',
        'Step 3/3 : no',
        id
      ],
      'well'
    ],
    [
      'output that looks like the end of a step',
      ['Step 1/2 : FROM x', '\n', id, 'Step 2/2 : RUN y', '\n', running, id, 'more output\n', id],
      'well'
    ],
    [
      'output that looks like an end and the next step',
      [
        'Step 1/3 : FROM x',
        '\n',
        id,
        'Step 2/3 : RUN y',
        '\n',
        running,
        id,
        'Step 3/3 : RUN z',
        running,
        id,
        'Step 3/3 : RUN evil'
      ],
      /line 30/
    ],
    [
      'output that says it goes on',
      ['Step 1/3 : FROM x', '\n', id, 'Step 2/3 : RUN y', '\n', running, running, id, 'Step 3/3 : RUN evil'],
      /line 30/
    ]
  ]
  for (const [title, said, ends] of cases) {
    const texts = said.some(text => text.includes('/3 : RUN'))
      ? ['FROM x', 'RUN y', 'RUN z']
      : ['FROM x', 'RUN y']
    const check = new StepCheck(source(...texts))
    const run = () => {
      for (const text of said) check.read(text)
      check.end()
    }
    if (ends === 'well') t.doesNotThrow(run, title)
    else t.throws(run, { code: 'E_BUILD_DIFFERS', message: ends }, title)
  }
  t.equal(
    new StepCheck(source('FROM x', 'RUN y')).read('Step 1/2 : FROM x\n'),
    'Step 1/2 : shown FROM x\n',
    'the log shows names'
  )
})

test('each step is told when it begins and when it ends, and what a command prints is none', async t => {
  const told: string[] = []
  const [id, running] = [' ---> 0123456789ab\n', ' ---> Running in 0123456789ab\n']
  const check = new StepCheck(source('FROM x', 'COPY y', 'RUN z', 'RUN never'), ({ number, name, state }) =>
    told.push(`${number} ${name} ${state}`)
  )
  const cached = ' ---> Using cache\n'
  for (const text of [
    'Step 1/4 : FROM x',
    id,
    'Step 2/4 : COPY y',
    cached,
    id,
    'Step 3/4 : RUN z',
    running,
    cached,
    'Step 4/4 : RUN never'
  ])
    check.read(text)
  check.fail('failed')
  t.same(told, [
    '1 [1/4] shown FROM x running',
    '1 [1/4] shown FROM x done',
    '2 [2/4] shown COPY y running',
    '2 [2/4] shown COPY y cached',
    '3 [3/4] shown RUN z running',
    '3 [3/4] shown RUN z failed'
  ])
})

test('a line that the engine counts is said as the author counts it', async t => {
  const generated = source('FROM x', 'FLY y')
  t.equal(
    withSourceLine('dockerfile parse error line 3: unknown instruction: FLY', { generated }),
    'dockerfile parse error line 20: unknown instruction: FLY'
  )
  t.equal(
    withSourceLine('dockerfile parse error on line 2: x', { generated }),
    'dockerfile parse error on line 10: x'
  )
  t.equal(
    withSourceLine('dockerfile parse error line 9: x', { generated }),
    'dockerfile parse error line 9: x'
  )
  t.equal(withSourceLine('dockerfile parse error line 3: x', {}), 'dockerfile parse error line 3: x')
})

engineTest('a build whose steps differ is ended at once, and leaves no image that has a name', async t => {
  const lab = startLab(t)
  const { docker, projectId, runtime } = lab
  const labels = Object.entries(await runtime.imageLabels({ projectId }))
    .map(([key, value]) => `${key}=${value}`)
    .join(' ')
  const handedOver = [
    'FROM busybox:lab',
    `LABEL ${labels}`,
    `RUN echo ${projectId} first`,
    'RUN echo second',
    'RUN echo third'
  ]
  const build = async (expected: readonly string[]) => {
    const tar = pack()
    tar.entry({ name: 'Dockerfile' }, ['# escape=\\', ...handedOver, ''].join('\n'))
    tar.finalize()
    const lines: string[] = []
    const tag = `lab-differs-${projectId}:1`
    const result = await runtime
      .build(
        Readable.from(tar),
        {
          tag,
          dockerfile: 'Dockerfile',
          buildArgs: {},
          owner: { projectId },
          isLabelled: true,
          generated: source(...expected),
          memoryBytes: 256 * 2 ** 20,
          cpus: 1
        },
        { signal: new AbortController().signal, onLine: line => lines.push(line) }
      )
      .then(
        image => ({ image }),
        (error: unknown) => ({ error })
      )
    return { ...result, lines, named: await runtime.image(tag) }
  }
  const differing = handedOver.with(3, 'RUN echo another')
  const stopped = await build(differing)
  t.match(stopped, {
    error: {
      code: 'E_BUILD_DIFFERS',
      message:
        /line 40 of web\/Dockerfile .*read "Step 4\/5 : RUN echo second" where "RUN echo another" was handed over/
    },
    named: undefined
  })
  t.notOk(stopped.lines.includes('third'), 'nothing of the steps after it is carried out')
  const short = await build(handedOver.slice(0, -1))
  t.match(short, { error: { code: 'E_BUILD_DIFFERS' }, named: undefined }, 'a step more')
  const last = await build(handedOver.with(4, 'RUN echo another'))
  t.match(last, { error: { code: 'E_BUILD_DIFFERS' }, named: undefined }, 'in the last step')
  t.same(
    (await docker.listContainers({ all: true })).filter(({ Command }) => Command.includes(projectId)),
    [],
    'and no container'
  )
  const same = await build(handedOver)
  t.match(same, { image: { id: same.named?.id } })
})
