import { test } from 'tap'
import { requireEngine } from '../../../lab/engine.js'
import { openLab, sample } from './deploy-lab.js'

test('no request fails over ten deploys under load', async t => {
  if (!(await requireEngine(t))) return
  const lab = await openLab()
  t.teardown(() => lab.close())
  const admin = await lab.k.as.session()
  const web = await lab.application('web', sample('v0'))
  t.match(await web.deployed(), { status: 'success' })
  const { direct_url: address } = await web.read()
  let isOver = false
  let served = 0
  const failures: string[] = []
  const clients = Array.from({ length: 6 }, async (_, index) => {
    while (!isOver) {
      await fetch(address, index % 2 === 0 ? {} : { method: 'POST', body: 'x'.repeat(2000) }).then(
        async answer => {
          if (answer.status === 200 && /^v\d+$/.test(await answer.text())) served += 1
          else failures.push(String(answer.status))
        },
        (error: Error) => failures.push(String(error.cause ?? error))
      )
      await new Promise(resolve => setTimeout(resolve, 5))
    }
  })
  for (let round = 1; round <= 10; round += 1) {
    await web.push(sample(`v${round}`))
    const ended = await web.deployed()
    t.equal(ended.status, 'success')
    t.equal(await (await fetch(address)).text(), `v${round}`)
  }
  isOver = true
  await Promise.all(clients)
  t.same(failures, [])
  t.ok(served > 500, `${served} requests served`)
  const { body } = await admin.get(`${web.path}/deployments?limit=3`)
  t.match(body[2], { switch_failed: 0, switch_served: Number })
  t.ok(
    body[2].switch_served > 20,
    `${body[2].switch_served} served during the last but two, longest gap ${body[2].switch_longest_gap_ms} ms`
  )
})
