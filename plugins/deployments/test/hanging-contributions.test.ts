import { definePlugin } from 'busbar/sdk'
import { until } from 'busbar/sdk/testing'
import { test } from 'tap'
import { requireEngine } from '../../../lab/engine.js'
import { containerParts, deployGates, type RolloutBoundary, rolloutHooks } from '../api.js'
import { openLab, sample } from './deploy-lab.js'

/** Where a plugin never answers. */
let hangsAt: RolloutBoundary | 'gate' | 'parts' | undefined
let hanging = 0
const forever = async <T>(): Promise<T> => {
  hanging++
  return await new Promise<T>(() => {})
}
const silent = definePlugin({
  id: 'silent',
  contributes(contribute) {
    contribute(rolloutHooks, 'silent', {
      at: async boundary => {
        if (boundary === hangsAt) await forever()
      }
    })
    contribute(deployGates, 'silent', {
      refuses: async () => (hangsAt === 'gate' ? await forever<null>() : null)
    })
    contribute(containerParts, 'silent', {
      partsFor: async () => (hangsAt === 'parts' ? await forever<{ volumes: [] }>() : { volumes: [] })
    })
  }
})

test('a deploy in which another plugin never answers can be cancelled', async t => {
  if (!(await requireEngine(t))) return
  const lab = await openLab({
    inline: [{ manifest: { id: 'silent', requires: { deployments: '^0.1.0' } }, definition: silent }]
  })
  t.teardown(() => lab.close())
  const web = await lab.application('web', sample('v0'))
  t.equal((await web.deployed()).status, 'success')
  const admin = await lab.k.as.session()
  for (const place of [
    'gate',
    'before prepare-image',
    'parts',
    'after prove-healthy',
    'before switch'
  ] as const) {
    hangsAt = place
    const before = hanging
    const { id } = await web.deploy()
    await until(() => hanging > before, `it hangs at ${place}`)
    t.match(await admin.post(`${web.path}/deployments/${id}/cancel`), { status: 202 }, place)
    t.match(await web.ended(id), { status: 'failed', error_message: 'cancelled' }, place)
  }
  hangsAt = undefined
  await web.push(sample('v1'))
  t.equal((await web.deployed()).status, 'success')
})
