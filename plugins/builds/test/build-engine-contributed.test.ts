import { buildEngines } from 'busbar/api/builds'
import { definePlugin } from 'busbar/sdk'
import { test } from 'tap'
import { requireEngine } from '../../../lab/engine.js'
import { openLab } from '../../deployments/test/deploy-lab.js'
import { dockerdProgram } from '../engines/dockerd-program.js'
import { builders, engineKinds, linesOf, makeImage, sample, settingsOf } from './engine-lab.js'

const kind = engineKinds['the Docker Engine of this machine']

test('a plugin contributes a kind of build engines, which is taken where it is the best, and can be asked for', async t => {
  if (!(await requireEngine(t))) return
  await makeImage(kind)
  const lab = await openLab({
    environment: { BUILD_ENGINE: '' },
    inline: [
      {
        manifest: { id: 'special', requires: { builds: '^0.1.0' } },
        definition: definePlugin({
          id: 'special',
          contributes: contribute => {
            contribute(buildEngines, 'special', {
              program: { ...dockerdProgram, kind: 'special', name: 'special engine' },
              image: kind.image,
              preference: 30,
              isFetched: false
            })
          }
        })
      }
    ]
  })
  t.teardown(async () => await lab.close())
  await lab.k.configure('builds', { ...settingsOf(kind), build_engine: 'auto' })
  const application = await lab.application('web', sample('v1'))
  const deployed = async (version: string, build_engine: string): Promise<string> => {
    await application.push(sample(version))
    const ended = await application.deployed()
    t.match(ended, { status: 'success', build_engine }, ended.error_message)
    t.equal(await (await fetch((await application.read()).direct_url)).text(), version)
    return linesOf(ended).join('\n')
  }
  const kinds = async (): Promise<Array<string | undefined>> =>
    (await builders(lab.projectId)).map(({ Names }) => Names[0]?.split('.')[2])

  t.match(
    await deployed('v2', 'special'),
    /Built by a special engine that this project alone uses \(docker:lab\)/
  )
  t.strictSame(await kinds(), ['special'])

  await lab.k.disable('special')
  await lab.k.configure('builds', { ...settingsOf(kind), build_engine: 'auto' })
  await deployed('v3', 'dockerd')
  t.strictSame(await kinds(), ['dockerd'], 'the one before has made way')

  await lab.k.configure('builds', { ...settingsOf(kind), build_engine: 'special' })
  t.match(await application.deployed(), {
    status: 'failed',
    error_message:
      /build_engine is special, and no plugin that runs has such build engines: there are auto, classic, buildkit, dockerd/
  })
})
