import { randomBytes } from 'node:crypto'
import { test } from 'tap'
import { requireEngine } from '../../../lab/engine.js'
import { engine } from '../../deployments/test/deploy-lab.js'
import { builders, type EngineKind, imageSetting, openEngineLab, sample } from './engine-lab.js'

/** The image of a build engine is replaced under its name, and removed. */
export function testEngineImage(name: string, kind: EngineKind): void {
  void test(`${name}: a build engine follows the image that its name means, and without one nothing is built`, async t => {
    if (!(await requireEngine(t))) return
    // Nothing answers there.
    const repo = `127.0.0.1:1/busbar-lab-${randomBytes(4).toString('hex')}`
    const image = `${repo}:1`
    const remove = async (name = image): Promise<void> => {
      await engine
        .getImage(name)
        .remove({ force: true })
        .catch(() => {})
    }
    let newer = ''
    // Behind the end of the platform: an image that a container has loses its name only.
    t.teardown(async () => await remove(newer))
    const lab = await openEngineLab(t, kind, { [imageSetting(kind)]: image })
    t.teardown(async () => await remove())
    await engine.getImage(kind.image).tag({ repo, tag: '1' })
    const application = await lab.application('web', sample('one'))
    t.match(await application.deployed(), { status: 'success', error_message: null })
    const [first] = await builders(lab.projectId)

    // A newer one, as far as anybody can tell.
    const made = await engine.createContainer({ Image: kind.image, Cmd: ['true'] })
    await made.commit({ repo, tag: '1', comment: 'newer' })
    await made.remove()
    await application.push(sample('two'))
    t.match(await application.deployed(), { status: 'success', error_message: null })
    const [second] = await builders(lab.projectId)
    t.not(second?.Id, first?.Id)
    newer = (await engine.getImage(image).inspect()).Id
    t.equal(second?.ImageID, newer)

    await remove()
    t.match(await application.deployed(), {
      status: 'failed',
      error_message: /there is no build engine of the kind that build_engine .* asks for: .*127\.0\.0\.1:1/
    })
  })
}
