import t from 'tap'
import { buildkitProgram } from '../engines/buildkit-program.js'
import { readBuilder } from '../engines/buildpacks-work.js'
import { dockerdProgram } from '../engines/dockerd-program.js'

t.test('a builder names its run image and its lifecycle, whatever else its label holds', async t => {
  const read = (metadata: unknown) => readBuilder(Buffer.from(JSON.stringify(metadata)))
  t.same(
    read({
      stack: { runImage: { image: 'heroku/heroku:24', mirrors: [] } },
      lifecycle: { version: '0.20.5' }
    }),
    { runImage: 'heroku/heroku:24', lifecycleImage: 'docker.io/buildpacksio/lifecycle:0.20.5' }
  )
  t.same(
    read({ images: [{ image: 'paketobuildpacks/run' }], stack: { runImage: { image: '' } } }),
    { runImage: 'paketobuildpacks/run:latest' },
    'as newer ones write it'
  )
  for (const metadata of [
    null,
    'x',
    { images: 'x', stack: { runImage: { image: '--all' } }, lifecycle: { version: '1 --rm' } },
    { images: [null], stack: [], lifecycle: { version: 7 } }
  ])
    t.same(read(metadata), {})
  t.same(readBuilder(Buffer.from('<no value>\n')), {})
  t.same(readBuilder(Buffer.from(`[${'1,'.repeat(30_000)}1]`)), {}, 'nor is one of too many members read')
})

t.test(
  'values of variables are in no argument of what runs pack, nor under names that others obey',
  async t => {
    const { argv, env } = dockerdProgram.buildpacks?.build({
      directory: '/var/lib/builder/work/one',
      tool: '/var/lib/builder/tools/pack-1b2',
      builder: 'busbar-base:1b2',
      buildpacks: [],
      variables: { args: ['--env', 'TAR_OPTIONS'], env: { TAR_OPTIONS: 'hush' } },
      caches: { build: 'busbar-cnb-cache-1', launch: 'busbar-cnb-launch-1' },
      noCache: true
    }) ?? { argv: [], env: {} }
    t.notMatch(argv.join(' '), 'hush')
    t.notOk('TAR_OPTIONS' in env)
    t.match(env, { BUSBAR_VARIABLE_0: 'hush', HOME: '/var/lib/builder/work/one/home' })
    t.match(argv.slice(argv.indexOf('1')), ['1', 'TAR_OPTIONS', 'build', 'busbar-result:one'])
    t.ok(argv.includes('--clear-cache'))
    t.notOk('buildpacks' in buildkitProgram)
  }
)
