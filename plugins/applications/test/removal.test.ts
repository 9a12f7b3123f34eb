import { until } from 'busbar/sdk/testing'
import { test } from 'tap'
import { requireEngine } from '../../../lab/engine.js'
import { engine, openLab, sample } from '../../deployments/test/deploy-lab.js'

test('the removal of an application waits for an image that the engine is about to let go of', async t => {
  if (!(await requireEngine(t))) return
  const lines: string[] = []
  const hasFailed = (): boolean => lines.some(line => line.includes('not removed yet'))
  const lab = await openLab({ onLog: line => lines.push(line) })
  t.teardown(async () => await lab.close())
  const web = await lab.application('web', sample('one'))
  const { image_tag: image } = await web.deployed()
  // As a build that was cancelled has it, until the engine has taken it apart.
  const holder = await engine.createContainer({ Image: image })
  t.teardown(async () => {
    await holder.remove({ force: true }).catch(() => undefined)
  })
  t.equal((await (await lab.k.as.session()).delete(web.path)).status, 200)
  await until(
    () => lines.some(line => line.includes('an image of a deleted application could not be removed')),
    'it has been tried',
    60_000
  )
  // Long enough for what comes after that to have tried it as well.
  await until(hasFailed, 'it has failed', 3000).catch(() => undefined)
  await holder.remove()
  await until(
    async () =>
      (await lab.k.query('select 1 from applications.application where id = $1', [web.id])).length === 0,
    'it is gone',
    60_000
  )
  t.same(await engine.listImages({ filters: { label: [`application-id=${web.id}`] } }), [])
  t.notOk(hasFailed(), 'at the first attempt')
})
