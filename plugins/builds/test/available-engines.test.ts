import { testClock } from 'busbar/sdk/testing'
import t from 'tap'
import type { BuildContext } from '../api.js'
import { AvailableEngines } from '../engines/available-engines.js'
import { buildkitProgram } from '../engines/buildkit-program.js'
import { problems } from '../problems.js'
import type { ResolverParts } from '../registry/image-resolver.js'
import { ownEngineKinds, recorder } from './kit.js'

const request = { projectId: 'shop', applicationId: 'web', deploymentId: 'one' }

/** Engines of a machine that holds these images, where no registry answers well: `asked` says which were asked for. */
function enginesOn(
  held: readonly string[],
  {
    build_engine,
    isSilent = false
  }: { build_engine?: 'buildkit' | 'dockerd' | 'classic'; isSilent?: boolean } = {}
) {
  const clock = testClock()
  const asked: string[] = []
  const parts = {
    clock,
    imageService: {
      image: async (name: string) =>
        held.includes(name) ? { id: `id of ${name}`, repoTags: [name], repoDigests: [] } : undefined
    },
    formerImages: { isOfOthers: async () => false },
    fetched: { find: async () => undefined },
    registries: {
      offer: async ({ name }: { name: string }, signal: AbortSignal) => {
        asked.push(name)
        if (!isSilent) throw problems.registryUnresolved({ registry: 'r', image: name, reason: 'no network' })
        signal.throwIfAborted()
        return await new Promise((_, reject) =>
          signal.addEventListener('abort', () => reject(signal.reason as Error), { once: true })
        )
      }
    }
  } as unknown as ResolverParts
  const settings = {
    usual_build_engine: 'auto',
    build_engine
  } as const
  return { clock, asked, held, engines: new AvailableEngines(parts, settings, ownEngineKinds()) }
}

t.test('auto asks a registry for BuildKit alone, and not again for an hour', async t => {
  const { engines, asked, clock } = enginesOn(['docker:x'])
  const context: BuildContext = recorder()
  t.match(await engines.choose(request, context), { kind: 'project', program: { kind: 'dockerd' } })
  t.same(asked, ['moby/buildkit:x'])
  await clock.advance(59 * 60_000)
  t.match(await engines.choose({ ...request, projectId: 'other' }, context), { program: { kind: 'dockerd' } })
  t.equal(asked.length, 1)
  clock.set(24 * 3_600_000)
  await engines.choose({ ...request, projectId: 'other' }, context)
  t.equal(asked.length, 1, 'whatever the clock of the machine is set to')
  await clock.advance(2 * 60_000)
  await engines.choose(request, context)
  t.equal(asked.length, 2)
})

t.test('what an operator loads is used by the next build', async t => {
  const held: string[] = []
  const { engines } = enginesOn(held)
  const context = recorder()
  t.match(await engines.choose(request, context), { kind: 'classic' })
  t.match(
    context.text(),
    /^Built by the classic builder .*docker pull moby\/buildkit:x.*no network.*docker:x.*not there/m
  )
  held.push('moby/buildkit:x')
  t.match(await engines.choose(request, context), { program: { kind: 'buildkit' } })
})

t.test('a registry that is silent holds builds up for seconds, and once', async t => {
  const { engines, asked, clock } = enginesOn([], { isSilent: true })
  const context = recorder()
  const choosing = engines.choose(request, context)
  await clock.advance(16_000)
  t.match(await choosing, { kind: 'classic' })
  t.match(context.text(), /the registry of moby\/buildkit:x took longer than 15 s/)
  t.match(await engines.choose(request, context), { kind: 'classic' })
  t.equal(asked.length, 1)
})

t.test('a build that is cancelled meanwhile does not go on with another engine', async t => {
  const { engines } = enginesOn([], { isSilent: true })
  const cancelled = new AbortController()
  const choosing = engines.choose(request, recorder(cancelled.signal))
  cancelled.abort(new Error('cancelled'))
  await t.rejects(choosing, { message: 'cancelled' })
})

t.test('an engine that did not start for a project is left alone for minutes, for that project', async t => {
  const { engines, clock } = enginesOn(['moby/buildkit:x', 'docker:x'])
  const context = recorder()
  t.match(await engines.choose(request, context), { program: { kind: 'buildkit' }, isReplaceable: true })
  engines.noteNotStarted(buildkitProgram, 'shop', 'it may not mount')
  t.match(await engines.choose(request, context), { program: { kind: 'dockerd' } })
  t.match(context.text(), /BuildKit \(moby\/buildkit:x\) is not used for some minutes: it may not mount/)
  t.match(await engines.choose({ ...request, projectId: 'other' }, context), {
    program: { kind: 'buildkit' }
  })
  await clock.advance(11 * 60_000)
  t.match(await engines.choose(request, context), { program: { kind: 'buildkit' } })
})

t.test('a kind that is asked for is the only one, whatever fails', async t => {
  const { engines } = enginesOn(['docker:x'], { build_engine: 'buildkit' })
  await t.rejects(engines.choose(request, recorder()), { code: 'E_BUILD_ENGINE_MISSING' })
})

const only = { kind: 'dockerd', why: 'pack needs a Docker Engine, which a BuildKit is not' } as const
const classic = { name: 'pack, elsewhere', lack: 'where little is limited', isClassicBuilder: false } as const

t.test('what one kind alone can build is built by that one, whatever other kind is asked for', async t => {
  for (const build_engine of ['auto', 'buildkit'] as const) {
    const { engines, asked } = enginesOn(
      ['moby/buildkit:x', 'docker:x'],
      build_engine === 'auto' ? {} : { build_engine }
    )
    t.match(await engines.choose(request, recorder(), { classic, only }), {
      program: { kind: 'dockerd' },
      isReplaceable: true,
      note: 'Built by a Docker Engine that this project alone uses (docker:x); pack needs a Docker Engine, which a BuildKit is not'
    })
    t.same(asked, [])
  }
  const { engines } = enginesOn(['docker:x'], { build_engine: 'dockerd' })
  t.match(await engines.choose(request, recorder(), { classic, only }), {
    isReplaceable: false,
    note: 'Built by a Docker Engine that this project alone uses (docker:x)'
  })
})

t.test('without that kind it is built as it is without any, unless that kind is asked for', async t => {
  const context = recorder()
  const { engines, asked } = enginesOn(['moby/buildkit:x'], { build_engine: 'buildkit' })
  t.match(await engines.choose(request, context, { classic, only }), { kind: 'classic' })
  t.same(asked, [], 'no registry is asked for it')
  t.match(
    context.text(),
    /^Built by pack, elsewhere, where little is limited: Docker Engine needs the image docker:x .*; pack needs a Docker Engine/
  )
  const wanting = enginesOn(['moby/buildkit:x'], { build_engine: 'dockerd' }).engines
  await t.rejects(wanting.choose(request, recorder(), { classic, only }), { code: 'E_BUILD_ENGINE_MISSING' })
  const choosing = enginesOn(['docker:x'], { build_engine: 'classic' }).engines
  t.match(await choosing.choose(request, recorder(), { classic, only }), {
    kind: 'classic',
    note: 'Built by pack, elsewhere, as build_engine says'
  })
})
