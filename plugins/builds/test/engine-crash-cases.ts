import { test } from 'tap'
import { requireEngine } from '../../../lab/engine.js'
import type { SampleOptions } from '../../../scripts/rotating-sample.mjs'
import { killWhen } from '../../deployments/test/crash-lab.js'
import { engine } from '../../deployments/test/deploy-lab.js'
import { atMoment, buildsAgain, isClean, leftInEngine, momentsOf } from './engine-fault-lab.js'
import { type EngineKind, openEngineLab, sample, settingsOf } from './engine-lab.js'

/** A platform that is killed at each moment of a build in a build engine, or at those of a sample. */
export function testCrashDuringBuild(name: string, kind: EngineKind, chosen?: SampleOptions): void {
  const title = `kill -9 of the platform while a build engine builds: ${name}`
  void test(title, async t => {
    if (!(await requireEngine(t))) return
    const lab = await openEngineLab(t, kind)
    const application = await lab.application('web', sample('v0'))
    const scene = { lab, application, docker: engine, kind }
    t.match(await application.deployed(), { status: 'success', error_message: null })
    const { direct_url: address } = await application.read()
    let serving = 'v0'
    for (const moment of momentsOf(title, chosen))
      await t.test(`during ${moment.name}`, async t => {
        const admin = await lab.k.as.session()
        if (moment.isFirst === true) t.equal((await admin.delete(`${application.path}/cache`)).status, 200)
        await application.push(moment.files(`killed during ${moment.name}`))
        await lab.k.stop()
        const id = await killWhen(lab, application, async (platform, deploymentId) => {
          await atMoment(
            scene,
            moment,
            async () => deploymentId,
            async path => (await platform.get(path)).body
          )
        })
        await lab.restart()
        t.equal(await (await fetch(address)).text(), serving)
        t.match(await application.ended(id), {
          status: 'failed',
          error_message: /the platform stopped while this deployment was at the step prepare-image/
        })
        if (moment.said !== undefined) t.match(await leftInEngine(scene), /sleep 4321/, 'the step goes on')
        // As if a minute had passed in which the killed process did not say that it lives; a plugin that starts looks at once.
        await lab.k.query("update builds.preparation set claimed_until = now() - interval '1 second'")
        await lab.k.configure('builds', settingsOf(kind))
        serving = `after ${moment.name}`
        await buildsAgain(t, scene, serving)
        await isClean(t, scene)
      })
  })
}
