import { test } from 'tap'
import { requireEngine } from '../../../lab/engine.js'
import type { SampleOptions } from '../../../scripts/rotating-sample.mjs'
import { engine } from '../../deployments/test/deploy-lab.js'
import { atMoment, buildsAgain, isClean, momentsOf } from './engine-fault-lab.js'
import { builders, type EngineKind, openEngineLab, sample } from './engine-lab.js'

/** A build engine that is killed at each moment of a build, or at those of a sample. */
export function testKilledEngine(name: string, kind: EngineKind, chosen?: SampleOptions): void {
  const title = `kill -9 of a build engine: ${name}`
  void test(title, async t => {
    if (!(await requireEngine(t))) return
    const lab = await openEngineLab(t, kind)
    const application = await lab.application('web', sample('v0'))
    const scene = { lab, application, docker: engine, kind }
    t.match(await application.deployed(), { status: 'success', error_message: null })
    for (const moment of momentsOf(title, chosen))
      await t.test(`during ${moment.name}`, async t => {
        const admin = await lab.k.as.session()
        if (moment.isFirst === true) t.equal((await admin.delete(`${application.path}/cache`)).status, 200)
        await application.push(moment.files(`killed during ${moment.name}`))
        const id = await atMoment(scene, moment, async () => (await application.deploy()).id)
        const [builder] = await builders(lab.projectId)
        await engine.getContainer(builder?.Id ?? '').kill()
        const ended = await application.ended(id)
        // One that does not start is made anew.
        if (moment.name === 'the start of the engine') t.equal(ended.status, 'success', ended.error_message)
        else
          t.match(ended, {
            status: 'failed',
            error_message: /the build engine of this project ended during the build, which was not meant/
          })
        await buildsAgain(t, scene, `after ${moment.name}`)
        await isClean(t, scene)
      })
  })
}
