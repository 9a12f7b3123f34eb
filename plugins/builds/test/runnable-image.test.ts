import { test } from 'tap'
import { checkRuns, emulates } from '../builders/runnable-image.js'
import { parseDockerfile } from '../dockerfile/parse-dockerfile.js'
import { upToStage } from '../dockerfile/target.js'
import { stageNames } from '../engines/base-names.js'

/** As the kernel writes an entry. */
const entry = (machine: string, state = 'enabled'): string =>
  `${state}\ninterpreter /usr/bin/qemu-x-static\nflags: F\noffset 0\nmagic 7f454c460201010000000000000000000200${machine}\nmask ffffffffffffff00fffffffffffffffffeffffff\n`

test('an entry of binfmt_misc says whose programs it runs by their ELF header', async t => {
  t.ok(emulates(entry('b700'), 'arm64'))
  t.notOk(emulates(entry('b700'), 'arm'))
  t.ok(emulates(entry('2800'), 'arm'))
  t.notOk(emulates(entry('b700', 'disabled'), 'arm64'))
  t.notOk(emulates('enabled\ninterpreter /usr/bin/python\nflags:\noffset 0\nmagic 6f0d0d0a\n', 'arm64'))
  t.notOk(emulates('enabled\ninterpreter /usr/bin/x\nflags:\nextension .jar\n', 'arm64'))
  t.notOk(emulates('', 'vax'))
})

const run = async (
  image: object,
  { platform, place = 'here', entries = [] }: { platform?: string; place?: string; entries?: string[] } = {}
): Promise<readonly string[]> => {
  const lines: string[] = []
  await checkRuns(
    {
      runtime: { info: async () => ({ place, platform: 'linux/amd64' }) as never },
      emulators: async () => entries
    },
    { image: image as never, ...(platform !== undefined && { platform }) },
    { log: ({ msg }) => void lines.push(msg) }
  )
  return lines
}
const arm = { platform: 'linux/arm64', foreignPlatform: 'linux/arm64' }

test('an image that this machine can neither run nor emulate is refused before a container of it starts', async t => {
  t.same(await run({ platform: 'linux/amd64' }), [])
  t.same(await run({ platform: 'linux/amd64' }, { platform: 'linux/amd64' }), [])
  await t.rejects(run(arm, { platform: 'linux/arm64' }), {
    code: 'E_BUILD_PLATFORM',
    message: /made for linux\/arm64, and this machine is linux\/amd64 .*tonistiigi\/binfmt --install arm64/
  })
  t.match(await run(arm, { entries: [entry('2800'), entry('b700')] }), [/emulates it/])
  t.match(await run(arm, { place: 'elsewhere' }), [/starts only if an emulator for arm64/])
})

test('an image that is not what build_platform asks for is refused', async t => {
  await t.rejects(run({ platform: 'linux/amd64' }, { platform: 'linux/arm64' }), {
    code: 'E_BUILD_PLATFORM',
    message: /made an image for linux\/amd64, and build_platform .* asks for linux\/arm64/
  })
})

const dockerfile = 'FROM a AS Build\nRUN x\nFROM b\nRUN y\nFROM c AS web\nRUN z\n'

test('a target leaves out the stages behind it, and one that is none names those that there are', async t => {
  const stagesOf = (target: string) =>
    upToStage(parseDockerfile(dockerfile), { target, name: 'Dockerfile' }).stages.length
  t.equal(stagesOf('build'), 1)
  t.equal(stagesOf('BUILD'), 1)
  t.equal(stagesOf('1'), 2)
  t.equal(stagesOf('web'), 3)
  for (const target of ['worker', '3', 'constructor'])
    t.throws(() => stagesOf(target), {
      code: 'E_BUILD_TARGET',
      message: new RegExp(`no stage ${target}, .*its stages are build, 1, web$`)
    })
})

test('the stages of a Dockerfile are named for its author, however it is written', async t => {
  t.same(stageNames(dockerfile), ['build', undefined, 'web'])
  t.same(stageNames('from --platform=$BUILDPLATFORM a \\\n  as one\nRUN echo FROM x AS y\n'), ['one'])
  t.same(stageNames(''), [])
})
