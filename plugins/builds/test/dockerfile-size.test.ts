import { test } from 'tap'
import { growthFault } from '../../../lab/growth.js'
import { engineTest } from '../../runtime-docker/test/lab.js'
import { BadDockerfile } from '../dockerfile/bad-dockerfile.js'
import { parseDockerfile } from '../dockerfile/parse-dockerfile.js'
import { planDockerfile } from '../dockerfile/plan.js'
import { checkSize } from '../dockerfile/size-check.js'
import type { BaseImage } from '../dockerfile/stage-walk.js'
import { startDockerfileLab } from './dockerfile-lab.js'
import { ordinary, ordinaryFetching } from './ordinary-dockerfiles.js'

const image: BaseImage = {
  environment: { PATH: '/usr/local/bin:/usr/bin:/bin', NODE_VERSION: '20.19.0', PORT: '8080' },
  declared: { labelBytes: 2_000, bytes: 6_000, shellBytes: 0, ports: 2, volumes: 1 }
}

/** Why it is refused, with its line; undefined when it is not. */
function refused(
  text: string,
  { base = image, buildArgs = {} }: { base?: BaseImage; buildArgs?: Readonly<Record<string, string>> } = {}
): string | undefined {
  try {
    checkSize(planDockerfile(parseDockerfile(text), buildArgs), buildArgs, () => base)
    return undefined
  } catch (error) {
    if (error instanceof BadDockerfile) return `line ${error.line}: ${error.message}`
    throw error
  }
}

const times = (count: number, line: (at: number) => string): string =>
  Array.from({ length: count }, (_, at) => line(at)).join('')
const x = (count: number): string => 'x'.repeat(count)

test('an ordinary Dockerfile is not refused for its size', async t => {
  for (const { title, files } of [...ordinary, ...ordinaryFetching('http://files.example')])
    t.equal(refused((files.Dockerfile ?? '').replace(/^\uFEFF/, '')), undefined, title)
  for (const [title, text] of [
    ['a path that grows', times(100, at => `ENV PATH=/opt/tool-${at}/bin:$PATH\n`)],
    ['one that may be empty', times(100, at => `ENV L="\${L:+$L:}/opt/lib-${at}"\n`)],
    ['one with a default', times(100, at => `ENV L=\${L:-/usr/lib}:/opt/lib-${at}\n`)],
    ['two in one line', times(50, at => `ENV PATH=$PATH:/a${at} MAN=$PATH:$MAN\n`)],
    ['many variables', times(300, at => `ENV VARIABLE_${at}="some value of it ${at}"\n`)],
    ['many labels', times(100, at => `LABEL org.example.label-${at}="${x(60)}"\n`)],
    ['many steps', times(400, at => `RUN echo ${x(100)} ${at}\n`)],
    ['many stages', times(60, at => `FROM x AS s${at}\nENV A=${x(50)}\nCOPY a b\nRUN make\n`)],
    ['long scripts', times(20, () => `RUN ${x(10_000)}\n`)],
    ['ports', 'ARG P=80\nEXPOSE $P ${PORT:-1} $PORT/udp 8000-8010/tcp\nENV Q="81 82"\nEXPOSE $Q\n'],
    ['a form of variables that only engines know', `ENV A=${x(100)}\nENV B=\${A#x}\${A//x/yy}\nRUN $B\n`]
  ] as const)
    t.equal(refused(`FROM x\n${text}`), undefined, title)
})

test('words that the engine would make long are refused with their line, whatever puts variables in', async t => {
  const long = `ENV A=${x(10_000)}\n`
  const seven = '$A'.repeat(7)
  const reason = /^line 3: .* can become longer than 65000 characters with its variables put in: /
  for (const text of [
    `ENV B=${seven}`,
    `ENV B ${seven}`,
    `ENV ${seven}=1`,
    `ENV "B=${seven}"`,
    `LABEL b=${seven}`,
    `ARG B=${seven}`,
    `WORKDIR /${seven}`,
    `USER ${seven}`,
    `EXPOSE ${seven}`,
    `VOLUME ${seven}`,
    `VOLUME ["${seven}"]`,
    `STOPSIGNAL ${seven}`,
    `COPY ${seven} /x`,
    `COPY a ${seven}`,
    `COPY --chown=${seven} a b`,
    `ADD ["a", "${seven}"]`,
    `WORKDIR ${'${A}'.repeat(7)}`,
    `WORKDIR ${'${A:-$A}'.repeat(7)}`,
    `WORKDIR ${'${N:-$A}'.repeat(7)}`,
    `WORKDIR ${'${A:+$A}'.repeat(7)}`,
    `WORKDIR ${'${A-x}'.repeat(7)}`,
    `WORKDIR ${'${A#x}'.repeat(7)}`,
    `WORKDIR ${'${A:+\\}$A}'.repeat(7)}`,
    `WORKDIR \${N:-'}'${seven}}`,
    `WORKDIR \${A:-\\\${N}}${seven}`,
    `WORKDIR ${'$A'.repeat(6)}\${A//x/${x(5_000)}}`,
    'WORKDIR ${A//x/0123456789}',
    `WORKDIR $1${seven}`
  ])
    t.match(refused(`FROM x\n${long}${text}\n`), reason, text)
  for (const name of ['AÄ', '1', '?', '_9'])
    t.match(
      refused(`FROM x\nENV ${name}=${x(10_000)}\nWORKDIR /${`$${name}`.repeat(7)}\n`),
      reason,
      `a variable called ${name}`
    )
  for (const text of [
    `VOLUME ["a\\"'${seven}'\\""]`,
    `COPY ["a\\"'${seven}'\\"", "/x"]`,
    `ADD ["a", "\\"'${seven}'\\""]`
  ])
    t.match(refused(`# escape=\`\nFROM x\n${long}${text}\n`), /^line 4: .* can become longer/, text)
  for (const name of ['@', '*', '#', '?', '-', '$', '!', '0', '1', '12', '_', 'é', 'Aé', 'éA', '𝒜', '٣', ''])
    t.match(
      refused(`FROM x\nENV ${name}=${x(10_000)}\nENV B=\${${name}//x/${x(10_000)}}\n`),
      reason,
      `a replacement in ${JSON.stringify(name)}`
    )
  t.match(
    refused(`FROM x\nENV N=B A=${x(10_000)}\nENV $N=$A$A$A$A\nWORKDIR $B$B\n`),
    /^line 4: /,
    'a name that is computed'
  )
})

test('what puts variables in counts wherever their values come from', async t => {
  const eight = (name: string): string => `$${name}`.repeat(8)
  const value = x(10_000)
  const reason = /can become longer than 65000/
  t.match(refused(`FROM x\nWORKDIR ${eight('A')}\n`, { base: { environment: { A: value } } }), reason)
  t.match(refused(`FROM x\nARG A\nWORKDIR ${eight('A')}\n`, { buildArgs: { A: value } }), reason)
  t.match(refused(`ARG A=${value}\nFROM x\nARG A\nWORKDIR ${eight('A')}\n`), reason)
  t.match(refused(`FROM x AS a\nENV A=${value}\nFROM a\nWORKDIR ${eight('A')}\n`), /^line 4: /)
  t.equal(refused(`FROM x AS a\nENV A=${value}\nFROM x\nWORKDIR ${eight('A')}\n`), undefined)
  t.equal(
    refused(`FROM x\nENV A=${value}\nONBUILD WORKDIR ${eight('A')}\n`),
    undefined,
    'a trigger is not carried out here'
  )
  t.match(
    refused(`FROM x AS a\nENV A=${value}\nONBUILD WORKDIR ${eight('A')}\nFROM a\n`),
    /^line 4: /,
    'but here'
  )
  t.match(
    refused('FROM x\nRUN true\n', {
      base: { environment: { A: value }, onBuild: [`WORKDIR ${eight('A')}`] }
    }),
    /^line 1: /,
    'and here'
  )
  t.match(
    refused(`FROM x\nENV A=${x(30_000)}\n${times(10, () => 'USER $A$A\n')}`),
    /^line 8: the instructions up to this one can become too long together/
  )
  t.equal(refused(`FROM x\n${times(4, at => `ENV A${at % 2}=${x(64_000)}\n`)}`), undefined, 'as written')
  t.match(refused(`FROM x\nENV ${times(1100, at => `A${at}= `)}\n`), /^line 2: .* more than 1000 variables/)
})

test('more than 64 exposed ports or volumes are refused with their line', async t => {
  const ports = /^line 2: the image has \d+ exposed ports here, and may have 64: EXPOSE those that/
  for (const text of [
    'EXPOSE 8080-65535/tcp 1-65535/udp',
    'EXPOSE 1-63',
    'EXPOSE 127.0.0.1:1-63:1-63/tcp',
    `EXPOSE ${times(63, at => `${at} `)}`,
    'EXPOSE "1-99"',
    'EXPOSE $PORT-9000',
    'EXPOSE ${X:-1-99}'
  ])
    t.match(refused(`FROM x\n${text}\n`), ports, text)
  t.equal(refused('FROM x\nEXPOSE 1-62\n'), undefined, 'with two of the base image')
  for (const text of [
    '0080',
    '080/tcp 00443/udp',
    '127.0.0.1:80:81/tcp',
    '[::1]:80:81',
    ':80',
    '8080/TCP 81/sctp',
    '"80"',
    '${X} 80'
  ])
    t.equal(refused(`FROM x\nEXPOSE ${text}\n`), undefined, text)
  const odd =
    /^line 2: EXPOSE holds ".*", which is no port and no range of ports: write 8080, 8080\/udp or 8000-8010$/
  for (const text of [
    '000001-65535/tcp',
    '1-000099',
    '1-65535-1',
    '1-99/tcp/udp',
    '1-99/',
    '1-',
    '-99',
    '+1-99',
    '１-99',
    'http',
    '1-99/tcp:80,'
  ])
    t.match(refused(`FROM x\nEXPOSE ${text}\n`), odd, text)
  for (const space of ['\u00a0', '\u0085', '\u2003', '\u3000']) {
    t.match(refused(`FROM x\nEXPOSE 80${space}1-99\n`), ports, JSON.stringify(space))
    t.match(
      refused(`FROM x\nENV P="80${space}1-99"\nEXPOSE $P\n`),
      /^line 3: .* exposed ports/,
      JSON.stringify(space)
    )
  }
  t.match(refused('FROM x\nENV P=1-99\nEXPOSE $P\n'), /^line 3: .* exposed ports/)
  t.match(refused('FROM x\nARG P\nEXPOSE $P\n', { buildArgs: { P: '1-99' } }), /^line 3: .* exposed ports/)
  t.match(refused('FROM x AS a\nEXPOSE 1-40\nFROM a\nEXPOSE 41-80\n'), /^line 4: .* exposed ports/)
  t.match(refused('FROM x AS a\nONBUILD EXPOSE 1-99\nFROM a\n'), /^line 3: .* exposed ports/)
  t.match(refused('FROM x\n', { base: { ...image, onBuild: ['EXPOSE 1-99'] } }), /^line 1: .* exposed ports/)
  t.match(
    refused('FROM x\nEXPOSE $ANY\n', { base: {} }),
    /^line 2: EXPOSE "\$ANY" holds a variable whose value is not certain before the build: write the port out$/
  )
  for (const text of [
    'EXPOSE $PÄ',
    'ENV Q=$PÄ\nEXPOSE $Q',
    'ENV Q=$NÄ R=1\nENV S=${Q:+80}\nEXPOSE ${S:-1-99}'
  ])
    t.match(
      refused(`FROM x\nENV P=80 PÄ=1-99 NÄ=\n${text}\n`),
      /: EXPOSE .* holds a variable whose value is not certain/,
      'engines take letters of every alphabet into a name'
    )
  const many = { labelBytes: 0, bytes: 0, shellBytes: 0, ports: 65, volumes: 65 }
  t.match(
    refused('FROM x\n', { base: { ...image, declared: { ...many, volumes: 0 } } }),
    /^line 1: the image that is built upon has 65 exposed ports/
  )
  t.match(
    refused('FROM x\n', { base: { ...image, declared: { ...many, ports: 0 } } }),
    /^line 1: the image that is built upon has 65 volumes/
  )
  t.match(refused(`FROM x\nVOLUME ${times(64, at => `/${at} `)}\n`), /^line 2: the image has 65 volumes here/)
  t.match(refused(`FROM x\nVOLUME ${JSON.stringify([...x(64)])}\n`), /^line 2: the image has 65 volumes/)
})

test('what each step repeats is refused with its line where it is large, or the steps are many', async t => {
  const label = (kilobytes: number) => times(kilobytes, at => `LABEL l${at}=${x(1000)}\n`)
  t.equal(refused(`FROM x\n${label(60)}RUN true\n`), undefined)
  t.match(
    refused(`FROM x\n${label(70)}`),
    /^line 6\d: the labels of the image become larger than 65536 bytes/
  )
  t.match(
    refused('FROM x\nLABEL a=b\n', {
      base: { declared: { ...image.declared, labelBytes: 65_600 } as never }
    }),
    /^line 2: the labels/,
    'those of the base image count'
  )
  const steps = (count: number) => times(count, at => `RUN ${at}\n`)
  t.match(
    refused(`FROM x\n${label(50)}${steps(200)}`),
    /^line \d+: the labels up to here are repeated by too/
  )
  t.match(refused(`FROM x\nENV A=${x(60_000)}\n${steps(1000)}`), /ENVs, ARGs, labels and commands up to here/)
  t.match(refused(`FROM x\nCMD ${x(60_000)}\n${steps(1000)}`), /ENVs, ARGs, labels and commands up to here/)
  t.match(
    refused(`FROM x\n${times(1000, at => `COPY a ${at}\n`)}CMD ${x(60_000)}\n`),
    /ENVs, ARGs, labels and commands up to here/,
    'a command is carried out before the copies that it follows'
  )
  t.match(refused(`FROM x\nONBUILD RUN ${x(60_000)}\n${steps(1000)}`), /commands up to here/)
  t.match(refused(`FROM x\nARG A=${x(60_000)}\n${steps(1000)}`), /commands up to here/)
  t.match(
    refused(`FROM x\n${times(1000, at => `RUN ${at} ${x(200)}\n`)}`),
    /commands up to here/,
    'each says how it came to be'
  )
  t.match(
    refused(`FROM x AS a\n${times(10, () => 'ONBUILD RUN true\n')}${times(1000, () => 'FROM a\n')}`, {
      base: {}
    }),
    /labels up to here/,
    'each trigger is a step'
  )
  const shell = `SHELL ["sh", "-c", "${x(1_000)}"]\n`
  t.equal(refused(`FROM x\n${shell}${steps(100)}`), undefined)
  t.match(refused(`FROM x\n${shell}${steps(300)}`), /commands up to here/, 'each step says its shell')
  t.match(
    refused(`FROM x AS a\n${shell}FROM a\n${steps(300)}`),
    /commands up to here/,
    'also the shell of a stage that is built upon'
  )
  t.match(
    refused(`FROM x\n${steps(300)}`, {
      base: { declared: { labelBytes: 0, bytes: 1_200, shellBytes: 1_000, ports: 0, volumes: 0 } }
    }),
    /commands up to here/,
    'and that of a base image'
  )
  t.match(
    refused(`FROM x\n${shell}ARG ${times(300, at => `A${at} `)}\n${steps(1)}`),
    /commands up to here/,
    'each name of an ARG is a step'
  )
  t.match(refused(`FROM x\n${times(1000, () => 'USER 1\n')}`), /commands up to here/, 'each is an entry')
  t.match(
    refused(`FROM x\nENV A=${x(20_000)}\n${times(20, at => `ENV A${at}=$A\n`)}`),
    /^line 1\d: what the image says of itself .* can become larger than 262144 bytes/
  )
})

test('names count in bytes', async t => {
  const wide = (count: number): string => '中'.repeat(count)
  t.match(
    refused(`FROM x\n${times(5, at => `ENV ${wide(20_000)}${at}=1\n`)}`),
    /^line 6: what the image says of itself .* can become larger than 262144 bytes/
  )
  t.match(
    refused('FROM x\nUSER 1\n', { base: { environment: { [wide(100_000)]: '' } } }),
    /^line 2: what the image says of itself/
  )
})

test('the time of looking grows with the length of the Dockerfile', async t => {
  for (const [title, size, text] of [
    ['variables', 200_000, size => `FROM x\nENV ${'A=$B '.repeat(size / 5 / 4)}\n`.repeat(1)],
    ['forms that are not known', 200_000, size => times(4, () => `WORKDIR ${'$?'.repeat(size / 8)}\n`)],
    ['dollars', 200_000, size => times(4, () => `WORKDIR ${'$'.repeat(size / 4)}\n`)],
    ['braces', 200_000, size => times(4, () => `WORKDIR ${'${A:-'.repeat(size / 20)}\n`)],
    ['wide names', 200_000, size => times(4, () => `WORKDIR $${'a'.repeat(size / 4)}Ä\n`)],
    ['replacements', 200_000, size => times(4, () => `WORKDIR ${'${A/'.repeat(size / 16)}\n`)],
    ['special names', 200_000, size => times(4, () => `WORKDIR ${'${@é'.repeat(size / 16)}\n`)],
    ['ports', 200_000, size => times(4, () => `EXPOSE ${':1-'.repeat(size / 12)}\n`)],
    ['steps', 1900, size => times(size, at => `RUN ${at}\n`)],
    [
      'stages with variables',
      1900,
      size => `ENV ${times(size / 2, at => `A${at}=1 `)}\n${times(size, at => `FROM x AS s${at}\nENV B=1\n`)}`
    ]
  ] as ReadonlyArray<readonly [string, number, (size: number) => string]>)
    t.equal(await growthFault(size, amount => refused(`FROM x\n${text(amount)}`)), null, title)
})

engineTest('the engine is not asked to build what it would make too much of', async t => {
  let asked = 0
  const { build } = startDockerfileLab(t, () => ({
    build: async () => {
      asked++
      throw new Error('the engine was asked')
    }
  }))
  for (const [line, text] of [
    [3, `ENV A=${x(10_000)}\nENV B=${'$A'.repeat(30)}\n`],
    [2, 'EXPOSE 8080-65535/tcp 1-65535/udp\n'],
    [
      6,
      times(4, at => `LABEL l${at}=${x(16_000)}\n`) +
        `LABEL more=${x(16_000)}\n${times(150, at => `ENV E=${at}\n`)}`
    ]
  ] as const)
    t.match((await build({ Dockerfile: `FROM busybox:lab\n${text}` })).error, {
      code: 'E_BUILD_DOCKERFILE',
      message: new RegExp(`^the Dockerfile Dockerfile is not valid: line ${line}: `)
    })
  t.equal(asked, 0)
})
