import { test } from 'tap'
import { buildsAgain, halfLoaded, isClean, openSmallScene } from './engine-fault-lab.js'
import { type EngineKind, linesOf, port } from './engine-lab.js'

/** What is written in a build engine, and handed over, when the disk is full. */
export function testEngineOnFullDisk(name: string, kind: EngineKind): void {
  void test(`a build engine on a full disk: ${name}`, async t => {
    const scene = await openSmallScene(t, kind)
    if (scene === undefined) return
    const { application, engine } = scene

    await t.test('a step that fills the disk fails, and the next build is as ever', async t => {
      await application.push({ Dockerfile: `FROM busybox:lab\nRUN dd if=/dev/zero of=/large bs=1M\n${port}` })
      const ended = await application.deployed()
      t.match(ended, { status: 'failed', error_message: /dd .* ended with exit code 1|no space|disk/i })
      t.match(linesOf(ended).join('\n'), /no space left on device/i)
      await buildsAgain(t, scene, 'room again')
      await isClean(t, scene)
    })

    await t.test('an image that does not fit fails with the reason, and leaves nothing', async t => {
      await application.push({
        // It is there as a step, as a file of the image, and where the engine unpacks it.
        Dockerfile: `FROM busybox:lab\nRUN head -c 320m /dev/zero > /large\n${port}`
      })
      const ended = await application.deployed()
      t.match(ended, { status: 'failed', error_message: /no space left|disk is full|disk of/i })
      t.comment(ended.error_message)
      await buildsAgain(t, scene, 'small again')
      await isClean(t, scene)
      t.same(await halfLoaded(engine), [])
    })
  })
}
