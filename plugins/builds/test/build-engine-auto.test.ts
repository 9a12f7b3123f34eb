import { test } from 'tap'
import { requireEngine } from '../../../lab/engine.js'
import { startRegistry } from '../../../lab/registry.js'
import { engine } from '../../deployments/test/deploy-lab.js'
import { builders, engineKinds, linesOf, openEngineLab, sample } from './engine-lab.js'

void test('without a word of the operator, the best engine builds that can be had', async t => {
  if (!(await requireEngine(t))) return
  const kind = engineKinds['the Docker Engine of this machine']
  const none = '127.0.0.1:1/none:1'
  // The test kit says classic; a variable that is empty is none.
  const lab = await openEngineLab(t, kind, {}, { BUILD_ENGINE: '' })
  const configure = async (images: Readonly<Record<string, unknown>>) =>
    await lab.k.configure('builds', { memory_mib: 1024, ...images })
  const application = await lab.application('web', sample('v1'))
  const deployed = async (version: string, build_engine: string): Promise<string> => {
    await application.push(sample(version))
    const ended = await application.deployed()
    t.match(ended, { status: 'success', build_engine }, ended.error_message)
    t.equal(await (await fetch((await application.read()).direct_url)).text(), version)
    return linesOf(ended).join('\n')
  }

  await t.test('a Docker Engine for each project, where there is no BuildKit', async t => {
    await configure({ buildkit_image: none, dockerd_image: kind.image })
    t.match(
      await deployed('v2', 'dockerd'),
      /Built by a Docker Engine that this project alone uses \(docker:lab\); BuildKit needs the image 127\.0\.0\.1:1\/none:1 on this machine \(docker pull/
    )
  })

  await t.test('the classic builder, where there is none of them', async t => {
    await configure({ buildkit_image: none, dockerd_image: none })
    t.match(
      await deployed('v3', 'classic'),
      /Built by the classic builder of the Docker Engine, .*: BuildKit/
    )
  })

  await t.test('one that is fetched and does not start here makes way for the next', async t => {
    const registry = await startRegistry()
    t.teardown(async () => await registry.close())
    const name = `${registry.host}/team/no-buildkit:1`
    await engine.getImage('busybox:lab').tag({ repo: `${registry.host}/team/no-buildkit`, tag: '1' })
    const stream = await engine.getImage(name).push({ authconfig: {} })
    await new Promise(resolve => engine.modem.followProgress(stream, resolve))
    await engine.getImage(name).remove()

    await configure({ buildkit_image: name, dockerd_image: kind.image })
    const first = await deployed('v4', 'dockerd')
    t.match(first, /Fetching .*no-buildkit:1 for build engines/)
    t.match(
      first,
      /Built by a Docker Engine .*; BuildKit \(.*no-buildkit:1\) is not used for some minutes: .*does not start/
    )
    t.notMatch(
      await deployed('v5', 'dockerd'),
      /Fetching|Built by a BuildKit/,
      'nor is it tried again at once'
    )
    t.strictSame(
      (await builders(lab.projectId)).map(({ Names }) => Names[0]?.split('.')[2]),
      ['dockerd']
    )
  })
})
