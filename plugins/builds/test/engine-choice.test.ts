import t from 'tap'
import { baseNames, familiarName } from '../engines/base-names.js'
import { buildkitProgram } from '../engines/buildkit-program.js'
import { dockerdProgram } from '../engines/dockerd-program.js'
import { chooseEngine } from '../engines/engine-choice.js'

const buildkit = { program: buildkitProgram, image: 'moby/buildkit:x' }
const dockerd = { program: dockerdProgram, image: 'docker:x' }
const missing = (reason: string) => ({ of: 'image', reason }) as const

t.test('auto takes the first build engine that is there, and says how to get a better one', async t => {
  const choice = chooseEngine('auto', [
    { ...buildkit, fault: missing('no registry') },
    { ...dockerd, fault: null }
  ])
  t.match(choice, { kind: 'project', program: { kind: 'dockerd' }, image: 'docker:x' })
  t.match(
    (choice as { note: string }).note,
    /Docker Engine that this project alone uses.*docker pull moby\/buildkit:x/
  )
  t.match(
    chooseEngine('auto', [
      { ...buildkit, fault: null },
      { ...dockerd, fault: null }
    ]),
    {
      program: { kind: 'buildkit' },
      note: /^Built by a BuildKit that this project alone uses \(moby\/buildkit:x\)$/
    }
  )
})

t.test('without any, auto takes the classic builder, and says why', async t => {
  const choice = chooseEngine('auto', [
    { ...buildkit, fault: missing('away') },
    { ...dockerd, fault: missing('gone') }
  ])
  t.match(choice, {
    kind: 'classic',
    note: /classic builder.*docker pull moby\/buildkit:x\): away.*docker:x\): gone/
  })
})

t.test('a kind that did not start for the project is told apart from one without an image', async t => {
  const choice = chooseEngine('auto', [
    { ...buildkit, fault: { of: 'start', reason: 'it may not mount' } },
    { ...dockerd, fault: null }
  ])
  t.match(choice, { kind: 'project', program: { kind: 'dockerd' }, isReplaceable: true })
  t.match(
    (choice as { note: string }).note,
    /BuildKit \(moby\/buildkit:x\) is not used .*: it may not mount$/
  )
  t.match(chooseEngine('dockerd', [{ ...dockerd, fault: null }]), { isReplaceable: false })
})

t.test('a kind that is asked for and not there is no reason to take another', async t => {
  t.match(
    chooseEngine('dockerd', [
      { ...buildkit, fault: null },
      { ...dockerd, fault: missing('gone') }
    ]),
    {
      kind: 'none',
      reason: /docker:x.*gone/
    }
  )
  t.match(chooseEngine('classic', [{ ...buildkit, fault: null }]), { kind: 'classic' })
})

t.test('names of images in a Dockerfile are found where they may stand', async t => {
  const text = `
ARG VERSION=20
ARG OTHER="debian:12" THIRD
FROM --platform=linux/amd64 node:\${VERSION} AS build
RUN --mount=type=bind,from=golang:1.22,target=/go true
COPY --from=build /a /b
COPY --from=docker.io/x/y:1 /a /b
FROM "$OTHER" as second
FROM build
FROM scratch
COPY --from=0 / /
FROM \${THIRD:-alpine:3}
FROM $UNKNOWN
`
  t.strictSame(baseNames(text, {}), ['node:20', 'golang:1.22', 'docker.io/x/y:1', 'debian:12', 'alpine:3'])
  t.strictSame(baseNames('ARG V=1\nFROM a:$V', { V: '2' }), ['a:2'])
  t.strictSame(
    baseNames('ARG T=1\nARG R="x/y" V=${W:-$T} W=\'$T\'\nFROM $R:$V\nFROM a:$W', {}),
    ['x/y:1', 'a:$T'],
    'an argument may have others in it'
  )
})

t.test('instructions over several lines have their names, too', async t => {
  const text = `ARG VERSION=20 \\
  # of the base

  OTHER=debian:12\t\\
  LAST=alpine:3
FROM \\
  node:$VERSION AS build
RUN --mount=type=cache,target=/a \\
    --mount=type=bind,from=golang:1.22,target=/go true \\\\
FROM $OTHER
FROM $LAST`
  t.strictSame(baseNames(text, {}), ['node:20', 'golang:1.22', 'debian:12', 'alpine:3'])
  t.strictSame(baseNames('# escape=`\nARG A=1 `\n B=x\\\nFROM $B:$A', {}), ['x\\:1'], 'by another escape')
})

t.test('BuildKit is given images by the names for which it looks', async t => {
  for (const [written, name] of [
    ['node:20', 'node:20'],
    ['node', 'node'],
    ['node:latest', 'node'],
    ['library/node:20', 'node:20'],
    ['docker.io/library/node:latest', 'node'],
    ['docker.io/node:20', 'node:20'],
    ['index.docker.io/library/node:20', 'node:20'],
    ['docker.io/bitnami/node:20', 'bitnami/node:20'],
    ['bitnami/library/node', 'bitnami/library/node'],
    ['registry.example.com/library/node:latest', 'registry.example.com/library/node'],
    ['localhost/library/node', 'localhost/library/node'],
    ['localhost:5000/node', 'localhost:5000/node'],
    ['node:20@sha256:0000', 'node:20@sha256:0000']
  ] as const)
    t.equal(familiarName(written), name, written)
})

t.test('a Dockerfile of many names or long lines costs little', async t => {
  t.equal(baseNames('FROM a$b\n'.repeat(10), {}).length, 1)
  t.equal(baseNames(Array.from({ length: 1000 }, (_, at) => `FROM i${at}`).join('\n'), {}).length, 50)
  t.strictSame(
    baseNames(`ARG A=${'x'.repeat(3900)}\nFROM ${'$A'.repeat(1900)}`, {}).map(name => name.length < 12_000),
    [true]
  )
})

t.test('arguments that double each other cost little', async t => {
  const text = Array.from({ length: 2000 }, (_, at) => `ARG A${at + 1}=x$A${at}$A${at}`).join('\n')
  t.ok((baseNames(`${text}\nFROM $A2000`, {})[0]?.length ?? 0) < 10_000)
})

t.test('secrets go by variables of the client whose names are ours', async t => {
  for (const program of [buildkitProgram, dockerdProgram]) {
    const { argv, env } = program.build({
      directory: '/var/lib/builder/work/1',
      file: 'Dockerfile',
      buildArgs: { A: 'b c' },
      secrets: { LD_PRELOAD: 'hush', PATH: 'other' },
      noCache: true,
      bases: [],
      missing: []
    })
    t.notOk(argv.join(' ').includes('hush'))
    t.ok(argv.includes('id=LD_PRELOAD,env=BUSBAR_SECRET_0'))
    t.equal(env.BUSBAR_SECRET_0, 'hush')
    t.notOk('LD_PRELOAD' in env || 'PATH' in env)
    t.ok(argv.includes('--no-cache'))
    t.ok(argv.some(argument => argument.endsWith('A=b c')))
  }
})

t.test('a front-end is what a builder names, and reads the file in the place of the engine', async t => {
  const build = {
    directory: '/var/lib/builder/work/1',
    file: 'railpack-plan.json',
    frontEnd: 'ghcr.io/railwayapp/railpack-frontend:v0.38.0',
    buildArgs: { 'cache-key': 'a', 'secrets-hash': 'b' },
    secrets: { TOKEN: 'hush' },
    noCache: false,
    bases: [
      {
        name: 'ghcr.io/railwayapp/railpack-frontend:v0.38.0',
        digest: 'sha256:1b2',
        directory: '/var/lib/builder/bases/1b2'
      }
    ],
    missing: []
  }
  const pairs = ({ argv }: { readonly argv: readonly string[] }) =>
    argv.map((word, at) => `${argv[at - 1]} ${word}`)
  const { frontEnd: _none, ...rest } = build
  const bare = { ...rest, file: 'Dockerfile' }

  const buildkit = pairs(buildkitProgram.build(build))
  for (const pair of [
    '--frontend gateway.v0',
    '--opt source=ghcr.io/railwayapp/railpack-frontend:v0.38.0',
    '--opt filename=railpack-plan.json',
    '--opt build-arg:cache-key=a',
    '--opt build-arg:secrets-hash=b',
    // An operator's is run as it is on the engine of the platform.
    '--opt context:ghcr.io/railwayapp/railpack-frontend:v0.38.0=oci-layout://base0@sha256:1b2',
    '--oci-layout base0=/var/lib/builder/bases/1b2',
    '--local dockerfile=/var/lib/builder/work/1/dockerfile',
    '--secret id=TOKEN,env=BUSBAR_SECRET_0'
  ])
    t.ok(buildkit.includes(pair), pair)
  t.notOk(buildkit.includes('--opt cmdline=dockerfile.v0'))
  const dockerfile = pairs(buildkitProgram.build(bare))
  t.ok(dockerfile.includes('--frontend dockerfile.v0') && dockerfile.includes('--opt cmdline=dockerfile.v0'))
  t.notOk(dockerfile.some(pair => pair.includes('source=')))

  const dockerd = pairs(dockerdProgram.build(build))
  for (const pair of [
    '--build-arg BUILDKIT_SYNTAX=ghcr.io/railwayapp/railpack-frontend:v0.38.0',
    '--build-arg secrets-hash=b',
    '--file /var/lib/builder/work/1/dockerfile/railpack-plan.json',
    '--secret id=TOKEN,env=BUSBAR_SECRET_0'
  ])
    t.ok(dockerd.includes(pair), pair)
  t.notOk(pairs(dockerdProgram.build(bare)).some(pair => pair.includes('BUILDKIT_SYNTAX')))
})

t.test('a program that builds elsewhere without a build engine is what the log names', async t => {
  const classic = { name: 'nixpacks, elsewhere', lack: 'where no limits hold', isClassicBuilder: false }
  t.match(chooseEngine('classic', [], classic), {
    kind: 'classic',
    note: 'Built by nixpacks, elsewhere, as build_engine says'
  })
  t.match(chooseEngine('auto', [{ ...buildkit, fault: missing('away') }], classic), {
    kind: 'classic',
    note: /^Built by nixpacks, elsewhere, where no limits hold: BuildKit needs the image/
  })
})
