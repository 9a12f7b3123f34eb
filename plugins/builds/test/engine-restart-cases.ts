import { test } from 'tap'
import { atMoment, buildsAgain, halfLoaded, isClean, momentOf, openSmallScene } from './engine-fault-lab.js'
import type { EngineKind } from './engine-lab.js'

/** The engine of the platform is killed during the hand-over. */
export function testRestartDuringHandOver(name: string, kind: EngineKind): void {
  void test(`an engine that is killed while it takes an image from a build engine has no half of it: ${name}`, async t => {
    const scene = await openSmallScene(t, kind)
    if (scene === undefined) return
    const { application, engine } = scene
    const moment = momentOf('the hand-over of the image')
    const files = moment.files('x')
    // Its disk has not room for more.
    await application.push({ ...files, Dockerfile: String(files.Dockerfile).replace('256m', '100m') })
    const id = await atMoment(scene, moment, async () => (await application.deploy()).id)
    await engine.kill()
    await engine.start()
    t.match(await application.ended(id), {
      status: 'failed',
      error_message: /Docker Engine|the build engine of this project ended during the build/
    })
    await buildsAgain(t, scene, 'after the restart')
    await isClean(t, scene)
    t.same(await halfLoaded(engine), [])
  })
}
