import { test } from 'tap'
import { growthFault } from '../../../lab/growth.js'
import { BadDockerfile } from '../dockerfile/bad-dockerfile.js'
import type { Escape } from '../dockerfile/characters.js'
import { generateDockerfile } from '../dockerfile/generate.js'
import { declaredArguments, parseDockerfile } from '../dockerfile/parse-dockerfile.js'
import { imagesOf, planDockerfile } from '../dockerfile/plan.js'
import { remoteAdds } from '../dockerfile/remote-files.js'
import type { BaseImage } from '../dockerfile/stage-walk.js'
import { checkTriggers } from '../dockerfile/triggers.js'
import { nasty } from './nasty-dockerfiles.js'
import { ordinary } from './ordinary-dockerfiles.js'

const imageId = ({ reference }: { readonly reference: string }): string =>
  `sha256:${Buffer.from(reference).toString('hex').padEnd(64, '0').slice(0, 64)}`

const generate = (text: string, buildArgs: Readonly<Record<string, string>> = {}) =>
  generateDockerfile(planDockerfile(parseDockerfile(text), buildArgs), {
    labels: { a: '1', b: 'x "y"' },
    imageId,
    remoteFiles: new Map()
  })

/** As it is read from the repository. */
const sourceOf = (files: Readonly<Record<string, string>>): string =>
  (files.Dockerfile ?? '').replace(/^\uFEFF/, '')

const label = 'LABEL a=1 b="x \\"y\\""'
const linesOf = (text: string, buildArgs?: Readonly<Record<string, string>>): string[] =>
  generate(text, buildArgs)
    .text.split('\n')
    .filter(line => line !== label && line !== '')

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

test('every way to write a Dockerfile that is not understood is refused, with its line and what to write instead', async t => {
  for (const { title, text, line, reason } of nasty({ id: `sha256:${'a'.repeat(64)}`, name: 'victim:1' })) {
    if (reason === undefined) continue
    const said = refusal(() => generate(text))
    t.match(said, new RegExp(`^line ${line}: [^]*${reason.source}`), title)
    t.ok((said?.length ?? 0) < 500, `${title}: it is short`)
  }
})

test('what is generated is one instruction a line, names no image, and is what its own reading gives', async t => {
  const id = imageId({ reference: 'x' })
  for (const { title, files } of ordinary) {
    const { text, steps } = generate(sourceOf(files))
    const lines = text.split('\n')
    t.match(lines[0], /^# escape=[\\`]$/)
    const escapeChar = lines[0]?.at(-1) ?? ''
    t.same(
      lines.slice(1, -1),
      steps.map(step => step.text),
      `${title}: a line is a step`
    )
    for (const step of steps) {
      t.match(step.text, /^[A-Z]+ \S/)
      t.notOk(step.text.endsWith(escapeChar) || step.text.trim() !== step.text, `${title}: ${step.text}`)
      if (step.text.startsWith('FROM '))
        t.match(
          step.text,
          /^FROM (?:--platform=\S+ )?(?:sha256:[0-9a-f]{64}|scratch|[a-z][\w.-]*)(?: AS [a-z][\w.-]*)?$/
        )
    }
    // Ids are no names to a reader, so each stands for one here.
    const named = text.replace(/sha256:[0-9a-f]{64}/g, 'x')
    const again = generateDockerfile(planDockerfile(parseDockerfile(named), {}), {
      labels: {},
      imageId: () => id,
      remoteFiles: new Map()
    })
    t.same(
      again.text.split('\n').filter(line => line !== 'LABEL '),
      text.replace(/sha256:[0-9a-f]{64}/g, id).split('\n'),
      title
    )
  }
})

test('the same Dockerfile gives the same text, so that the cache of the engine holds', async t => {
  for (const { files } of ordinary) t.equal(generate(sourceOf(files)).text, generate(sourceOf(files)).text)
})

test('what only notes something goes before the copies that it follows, so that a change of files repeats nothing else', async t => {
  const orderOf = (...lines: string[]): string[] => linesOf(['FROM x', ...lines].join('\n')).slice(2)
  t.same(orderOf('RUN a', 'COPY . .', 'USER me', 'EXPOSE 1', 'CMD ["b"]'), [
    'RUN a',
    'USER me',
    'EXPOSE 1',
    'CMD ["b"]',
    'COPY . .'
  ])
  t.same(
    orderOf('COPY a b', 'CMD a', 'ADD c d', 'STOPSIGNAL 9', 'HEALTHCHECK NONE', 'ENTRYPOINT b', 'COPY e f'),
    ['CMD a', 'STOPSIGNAL 9', 'HEALTHCHECK NONE', 'ENTRYPOINT b', 'COPY a b', 'ADD c d', 'COPY e f'],
    'each kind in its own order'
  )
  for (const between of [
    'RUN a',
    'WORKDIR /a',
    'ENV A=1',
    'ARG A',
    'LABEL a=1',
    'VOLUME /a',
    'SHELL ["a"]',
    'ONBUILD RUN a'
  ]) {
    const lines = ['COPY . .', between, 'CMD ["b"]']
    t.same(orderOf(...lines), lines, `nothing passes ${between}`)
  }
})

test('a step says where the author has written it, wherever it is carried out', async t => {
  t.same(
    generate('FROM x\nCOPY . .\n\nUSER me').steps.map(({ text, sourceLine }) => [
      text.split(' ')[0],
      sourceLine
    ]),
    [
      ['FROM', 1],
      ['LABEL', 1],
      ['USER', 4],
      ['COPY', 2]
    ]
  )
})

test('labels go after each FROM that is not an earlier stage', async t => {
  const names = (text: string): string[] =>
    generate(text)
      .text.split('\n')
      .slice(1, -1)
      .map(line => (line === label ? 'label' : (line.split(' ')[0] ?? '')))
  t.same(names('ARG V=1\nFROM node:$V\nRUN x'), ['ARG', 'FROM', 'label', 'RUN'])
  t.same(names('FROM node AS Build\nRUN FROM x\nfrom build\nFROM node\n'), [
    'FROM',
    'label',
    'RUN',
    'FROM',
    'FROM',
    'label'
  ])
  t.same(names('FROM node AS node\nRUN a \\\nFROM b\nFROM node'), ['FROM', 'label', 'RUN', 'FROM'])
  t.same(names('FROM scratch\nCOPY a /'), ['FROM', 'label', 'COPY'])
})

const references: ReadonlyArray<
  readonly [what: string, dockerfile: string, images: readonly string[], args?: Record<string, string>]
> = [
  ['an image', 'FROM node:20\nRUN x\n', ['node:20']],
  [
    'lower case, a platform and a name',
    'from --platform=linux/amd64 node:20 as Build\nFROM build\n',
    ['node:20']
  ],
  [
    'stages are no images, in any case',
    'FROM a AS one\nFROM b AS TWO\nCOPY --from=One /x /x\nCOPY --from=0 /x /x\nFROM two\n',
    ['a', 'b']
  ],
  ['a stage named as its image', 'FROM node AS node\nFROM node\n', ['node']],
  ['nothing', 'FROM scratch\nCOPY a /\n', []],
  [
    'what a file is copied from',
    'FROM a\nCOPY --chown=1:1 --from=registry.example.com/b:1 /x /y\n',
    ['a', 'registry.example.com/b:1']
  ],
  [
    'what a build on top of it would copy',
    'FROM a AS one\nONBUILD COPY --from=b /x /y\nonbuild copy --chown=1 --from=c /x /y\nONBUILD RUN x\nFROM one\n',
    ['a', 'b', 'c']
  ],
  ['an argument with a default', 'ARG TAG=20\nFROM node:${TAG}\n', ['node:20']],
  ['an argument that the application sets', 'ARG TAG=20\nFROM node:$TAG\n', ['node:22'], { TAG: '22' }],
  [
    'an argument that the application sets, in another',
    'ARG TAG=20\nARG IMAGE=node:$TAG\nFROM $IMAGE\n',
    ['node:22'],
    { TAG: '22' }
  ],
  ['several arguments in a line', 'ARG A=a B=b C\nFROM $A/$B$C\n', ['a/b']],
  ['quotes, alternatives and absence', 'ARG A="x"\nARG B\nFROM ${A}-${B:-y}:${A:+z}\n', ['x-y:z']],
  ['alternatives in alternatives', 'ARG B=node\nFROM ${A:-${B}:${C:-20}}\n', ['node:20']],
  ['an argument of a stage does not count', 'FROM scratch\nARG A=secret\nFROM b${A}\n', ['b']],
  ['continued lines', 'FROM \\\n  node:20 \\\n  AS x\n', ['node:20']],
  ['a comment is none', '# FROM a\nFROM b\n', ['b']]
]

test('the images that a Dockerfile takes from outside are found', async t => {
  for (const [what, dockerfile, images, args = {}] of references)
    t.same(
      imagesOf(planDockerfile(parseDockerfile(dockerfile), args)).map(({ reference }) => reference),
      images,
      what
    )
})

test('ARG is found in every form the engine knows', async t => {
  const names = (text: string) => [...declaredArguments(parseDockerfile(text))].sort()
  t.same(names('ARG A\nFROM x\narg B=1\n  ARG C="a b" D E=\'x\'\nRUN echo ARG F\n# ARG G\n'), [
    'A',
    'B',
    'C',
    'D',
    'E'
  ])
  t.same(
    names('FROM x\nRUN echo \\\n# comment\nARG A\nARG B \\\n  C=2 \\\n\n  D\n'),
    ['B', 'C', 'D'],
    'a continued line is one instruction'
  )
  t.same(names('# escape=`\nFROM x\nARG A `\n B\nRUN dir C:\\\nARG C\n'), ['A', 'B', 'C'])
  t.same(names('ARG A=$B\r\nFROM x\r\n'), ['A'])
})

test('values of ARG before FROM are handed over as what they are, and the names of stages as they are', async t => {
  t.same(
    linesOf('ARG A=1\nARG B="$A \\" \\$x" C=${A:+y}\nFROM x AS One\nFROM one\nCOPY --from=ONE /a /b\n'),
    [
      '# escape=\\',
      'ARG A=1',
      'ARG B="1 \\" \\$x"',
      'ARG C=y',
      `FROM ${imageId({ reference: 'x' })} AS one`,
      'FROM one',
      'COPY --from=0 /a /b'
    ]
  )
  t.same(linesOf('# escape=`\nARG A=a`$b\nFROM x\n')[1], 'ARG A="a`$b"')
})

test('an image is handed over by its id wherever it is named', async t => {
  t.same(linesOf('FROM x AS a\nCOPY --from=y:1 /a /b\nONBUILD COPY --from=z /a /b\n').slice(1), [
    `FROM ${imageId({ reference: 'x' })} AS a`,
    `COPY --from=${imageId({ reference: 'y:1' })} /a /b`,
    `ONBUILD COPY --from=${imageId({ reference: 'z' })} /a /b`
  ])
})

test('several ARGs of a line are handed over one by one', async t => {
  t.same(linesOf('FROM x\nARG A=1 B C="y z"\n').slice(2), ['ARG A=1', 'ARG B', 'ARG C="y z"'])
})

test('what an ADD could become cannot be an address, and an address is a file of the context or refused', async t => {
  t.same(
    linesOf('FROM x\nADD $A /\nADD "a" /b\nADD ["$A", "/b"]\nADD /$A ./$B c /d/\nADD \\http:// /x\n').slice(
      2
    ),
    ['ADD ./$A /', 'ADD ./"a" /b', 'ADD ["./$A","/b"]', 'ADD /$A ./$B c /d/', 'ADD ./\\http:// /x']
  )
  const url = 'https://example.com/a.tgz'
  const from = imageId({ reference: 'files' })
  const plan = planDockerfile(parseDockerfile(`FROM x\nADD a /b\nADD --chown=1:1 ${url} /a/\n`), {})
  const adds = remoteAdds(plan, {}, () => ({}))
  t.match(adds, [{ addresses: [url], instruction: { line: 3 } }], 'what is to be fetched before')
  const replaced = generateDockerfile(plan, {
    labels: {},
    imageId,
    remoteFiles: new Map(adds.map(({ instruction }) => [instruction, { from, sources: ['/0/*'] }]))
  })
  t.same(replaced.text.split('\n').at(-2), `COPY --from=${from} --chown=1:1 ["/0/*","/a/"]`)
  t.equal(
    replaced.steps.at(-1)?.shown,
    `ADD --chown=1:1 ${url} /a/`,
    'the log shows what the author has written'
  )
})

test('ARG and ENV are put into the address of an ADD where they are certain, and otherwise it is refused with its line', async t => {
  const image = { environment: { HOST: 'files.example', PATH: '/bin' } }
  const fetched = (
    text: string,
    buildArgs: Readonly<Record<string, string>> = {},
    base: BaseImage = image
  ): string => {
    let addresses: string[] = []
    return (
      refusal(() => {
        addresses = remoteAdds(
          planDockerfile(parseDockerfile(text), buildArgs),
          buildArgs,
          () => base
        ).flatMap(({ addresses }) => addresses)
      }) ?? addresses.join(' ')
    )
  }
  const add = 'ADD https://$HOST/v${V:-0}.tgz /x\n'
  for (const [text, address] of [
    [`FROM x\n${add}`, 'https://files.example/v0.tgz'],
    [`FROM x\nARG V=1\n${add}`, 'https://files.example/v1.tgz'],
    [`ARG V=2\nFROM x\n${add}ARG V\n${add}`, 'https://files.example/v0.tgz https://files.example/v2.tgz'],
    [`FROM x\nENV V=3 HOST=$HOST.org\nARG V=4\n${add}`, 'https://files.example.org/v3.tgz'],
    [`FROM x\nENV V 5\nARG HOST=other\n${add}`, 'https://files.example/v5.tgz'],
    [
      `FROM x AS a\nENV V=6\nARG W=1\nFROM a\n${add}ADD http://h/$W /y\n`,
      'https://files.example/v6.tgz http://h/'
    ],
    [
      'FROM x\nARG U="http://h/a b"\nARG A=1 B=$A\nADD $U /x\nADD ["http://h/$B", "/x"]\n',
      'http://h/a b http://h/1'
    ],
    ['FROM x\nADD "http://h/q" /x\nADD \\http://h/e /x\n', 'http://h/q http://h/e'],
    ['FROM x\nADD $HOST /x\nADD ${HOST#f} /x\n', '']
  ] as const)
    t.equal(fetched(text), address, text)
  t.equal(
    fetched(`FROM x\nARG V=1\n${add}`, { V: '7' }),
    'https://files.example/v7.tgz',
    'what the application sets wins'
  )
  const uncertain =
    /^line \d+: the address .* holds a variable whose value is not certain before the build: write the address out, or fetch it in a RUN step$/
  for (const text of [
    'FROM x\nADD http://h/${HOST#f} /x\n',
    'FROM x\nENV ${HOST}=1\nADD http://h/$ANY /x\n',
    'FROM x AS a\nONBUILD ENV V=1\nFROM a\nADD http://h/$V /x\n',
    'FROM x\nADD http://h$PATH$B${C:?no} /x\n'
  ])
    t.match(fetched(text), uncertain, text)
  t.match(fetched(`FROM x\n${add}`, {}, {}), uncertain, 'an image that does not tell')
  t.match(
    fetched(`FROM x\n${add}`, {}, { ...image, onBuild: ['ENV V=9'] }),
    uncertain,
    'an image with a trigger'
  )
  for (const address of [
    'git@h:a.git',
    'git://h/a',
    'https://github.com/a/b.git',
    'http://h/a.git#main:x',
    'ssh://h/a',
    'ftp://h/a',
    'file:///etc/passwd',
    'github.com/a/b'
  ])
    t.match(fetched(`FROM x\n\nADD ${address} /x\n`), /^line 3: ADD does not fetch/, address)
})

test('triggers of an image that is built upon are carried out only when they are plain', async t => {
  const scope = { earlier: new Map([['tools', 0]]), all: new Set(['tools']), index: 1 }
  const checkUnder = (escapeChar: Escape, ...triggers: string[]) =>
    refusal(() => checkTriggers(triggers, 'node:onbuild', scope, 7, escapeChar))
  const check = (...triggers: string[]) => checkUnder('\\', ...triggers)
  const id = `sha256:${'b'.repeat(64)}`
  t.equal(
    check(
      'ARG NODE_ENV',
      'ENV NODE_ENV $NODE_ENV',
      'COPY package.json /usr/src/app/',
      'RUN  npm install && npm cache clean --force',
      'COPY --from=tools /x /x',
      'copy --chown=1:1 --from=0 /x /x',
      'ADD . /src'
    ),
    undefined
  )
  t.same(checkTriggers([`COPY --from=${id} /x /x`], 'x', scope, 1, '\\'), [id], 'whose it is is to be asked')
  for (const [trigger, reason] of [
    ['COPY --from=victim:1 /x /x', /there is no stage/],
    ['COPY --from=1 /x /x', /there is no stage/],
    [`COPY --from=${id.slice(0, 20)} /x /x`, /there is no stage/],
    ['COPY --from="tools" /x /x', /without quotes/],
    ['RUN x\nCOPY --from=victim:1 /x /x', /more than one line/],
    ['# escape=`\nCOPY --from=vic`\ntim:1 /x /x', /more than one line/],
    ['\uFEFFCOPY --from=victim:1 /x /x', /U\+FEFF/],
    ['ADD http://10.0.0.1/ /x', /fetches from an address/],
    ['ADD $X /x', /fetches from an address/],
    ['LABEL application-id=x', /sets the label application-id/],
    ['LABEL "$x"=y', /cannot be the key/],
    ['FROM victim:1', /not possible/],
    ['ONBUILD RUN x', /not possible/],
    ['FLY away', /unknown instruction/],
    ['RUN --mount=from=victim:1 x', /--mount/],
    ['', /more than one line/],
    ['RUN x\\', /not begin|escape|more than one/]
  ] as const)
    t.match(check(trigger), new RegExp(`^line 7: the image [^]*${reason.source}`), JSON.stringify(trigger))
  // Read with one escape character, and expanded with the other.
  for (const trigger of ['ENV B=\\$A\\$A', 'ENV B=`$A', 'RUN echo \\"', 'COPY ["a\\"", "b"]']) {
    t.equal(check(trigger), undefined, trigger)
    t.match(
      checkUnder('`', 'RUN true', trigger),
      /^line 7: the image "node:onbuild" carries the trigger .*, which has another meaning under `# escape=`: remove that directive, or choose another base image$/,
      trigger
    )
  }
  t.equal(checkUnder('`', 'ENV NODE_ENV $NODE_ENV', 'RUN npm install'), undefined)
})

/** As long as one instruction may be, nearly: a longer one is refused before anything else of it is read. */
const instruction = 60_000
/** Of one instruction each, but for those of comments. */
const shapes: Readonly<Record<string, (size: number) => string>> = {
  'quotes in ARG': size => `FROM x\nARG a ${'"""'.repeat(size / 3)}`,
  'escaped quotes in ARG': size => `FROM x\nARG a ${'\\"'.repeat(size / 2)}`,
  'escapes in a quote': size => `FROM x\nENV A="${'\\a'.repeat(size / 2)}\n`,
  'words of ENV': size => `FROM x\nENV ${'a="b" '.repeat(size / 6)}\n`,
  blanks: size => `FROM x\nRUN a${' '.repeat(size)}b\n`,
  'blanks at ends of lines': size => `FROM x\nRUN ${'a \t \\\n'.repeat(size / 6)}b\n`,
  'comments in a continuation': size => `FROM x\nRUN a \\\n${'#\n'.repeat(size / 2)}b\n`,
  comments: size => `${'#\n'.repeat(size * 2)}FROM x\n`,
  'equals signs of directives': size => `# escape${' '.repeat(size * 2)}${'='.repeat(size * 2)}\nFROM x\n`,
  flags: size => `FROM x\nCOPY ${'--from=a '.repeat(size / 9)} b c\n`,
  'open braces': size => `FROM ${'${A:-'.repeat(size / 5)}\n`,
  variables: size => `ARG A=1\nFROM ${'$A'.repeat(size / 2)}\n`,
  brackets: size => `FROM x\nRUN ${'['.repeat(size)}\n`,
  'beginnings of heredocs': size => `FROM x\nRUN ${'1<'.repeat(size / 4)} ${'9'.repeat(size / 2)}\n`,
  labels: size => `FROM x\nLABEL ${'a=b '.repeat(size / 4)}\n`
}

for (const [what, shape] of Object.entries(shapes)) {
  test(`${what}: reading takes time that grows with the length of the text alone`, async t => {
    t.notMatch(
      refusal(() => generate(shape(instruction))),
      /is longer than/,
      'it is not its length that it is refused for'
    )
    const fault = await growthFault(instruction, size => {
      const text = shape(size)
      for (let n = 0; n < 8; n++) refusal(() => generate(text))
    })
    t.equal(fault, null)
  })
}
