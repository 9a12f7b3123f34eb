import { definePlugin } from 'busbar/sdk'
import { test } from 'tap'
import { requireEngine } from '../../../test/lab/engine.js'
import { type RolloutBoundary, rolloutHooks, rolloutSteps } from '../api.js'
import { openLab, sample, until } from './deploy-lab.js'

/** Throws at one boundary. */
let faultAt: RolloutBoundary | undefined
const faults = definePlugin({
  id: 'faults',
  contributes(contribute) {
    contribute(rolloutHooks, 'faults', {
      at(boundary) {
        if (boundary === faultAt) throw new Error(`fault ${boundary}`)
      }
    })
  }
})

test('a fault at any boundary', async t => {
  if (!(await requireEngine(t))) return
  const lab = await openLab({
    inline: [{ manifest: { id: 'faults', requires: { deployments: '^0.1.0' } }, definition: faults }]
  })
  t.teardown(() => lab.close())
  const web = await lab.application('web', sample('v0'))
  t.equal((await web.deployed()).status, 'success')
  const { direct_url: address } = await web.read()
  const serving = async (): Promise<string> => await (await fetch(address)).text()
  let version = 'v0'

  for (const step of rolloutSteps.slice(0, rolloutSteps.indexOf('record'))) {
    for (const boundary of [`before ${step}`, `after ${step}`] as const) {
      await t.test(
        `${boundary}: the old version serves, nothing is left, the record says where and why`,
        async t => {
          const before = await web.containers()
          await web.push(sample(`never ${boundary}`))
          faultAt = boundary
          const failed = await web.deployed()
          faultAt = undefined
          t.match(failed, {
            status: 'failed',
            error_message: new RegExp(`fault ${boundary}`),
            finished_at: String
          })
          t.equal(await serving(), version)
          t.same(
            (await web.containers()).map(({ Id, Names, State }) => [Id, Names, State]),
            before.map(({ Id, Names, State }) => [Id, Names, State])
          )
          t.match(await web.read(), { status: 'running', direct_url: address })
        }
      )
    }
  }

  await t.test('before record: the switch is taken back', async t => {
    await web.push(sample('never recorded'))
    faultAt = 'before record'
    t.match(await web.deployed(), { status: 'failed', step: 'switch' })
    faultAt = undefined
    t.equal(await serving(), version)
    t.match(await web.containers(), [{ Names: [`/${web.slug}`] }])
  })

  for (const boundary of [
    'after record',
    'before drain',
    'after drain',
    'before clean-up',
    'after clean-up'
  ] as const) {
    await t.test(
      `${boundary}: the new version serves, and what is left of the old one is cleared away later`,
      async t => {
        version = `new ${boundary}`
        await web.push(sample(version))
        faultAt = boundary
        t.match(await web.deployed(), { status: 'success', error_message: null })
        await until(async () => (await serving()) === version, 'the new version serves')
        faultAt = undefined
        version = `${version}, again`
        await web.push(sample(version))
        t.match(await web.deployed(), { status: 'success' })
        t.equal(await serving(), version)
        await until(async () => (await web.containers()).length === 1, 'one container is left')
      }
    )
  }
})
