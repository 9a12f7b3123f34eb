import { definePlugin } from 'busbar/sdk'
import { until } from 'busbar/sdk/testing'
import { test } from 'tap'
import { requireEngine } from '../../../lab/engine.js'
import { rotatingSample } from '../../../scripts/rotating-sample.mjs'
import { type RolloutBoundary, rolloutHooks, rolloutSteps } from '../api.js'
import { openLab, sample } from './deploy-lab.js'

/** Throws at one boundary, when `before` is done. */
let faultAt: RolloutBoundary | undefined
let before = async (): Promise<void> => {}
const faults = definePlugin({
  id: 'faults',
  contributes(contribute) {
    contribute(rolloutHooks, 'faults', {
      async at(boundary) {
        if (boundary !== faultAt) return
        await before()
        throw new Error(`fault ${boundary}`)
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

  const undone = rolloutSteps
    .slice(0, rolloutSteps.indexOf('record'))
    .flatMap(step => [`before ${step}`, `after ${step}`] as const)
  const failing = rotatingSample('a fault at a boundary before the record', undone, {
    // The image is there; both containers are; the new one serves.
    always: ['after prepare-image', 'after prove-healthy', 'after switch'],
    others: 4
  })
  for (const boundary of undone.filter(one => failing.has(one))) {
    await t.test(
      `${boundary}: the old version serves, nothing is left, the record says where and why`,
      async t => {
        const containers = await web.containers()
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
          containers.map(({ Id, Names, State }) => [Id, Names, State])
        )
        t.match(await web.read(), { status: 'running', direct_url: address })
      }
    )
  }

  await t.test('before record: the switch is undone', async t => {
    await web.push(sample('never recorded'))
    faultAt = 'before record'
    t.match(await web.deployed(), { status: 'failed', step: 'switch' })
    faultAt = undefined
    t.equal(await serving(), version)
    t.match(await web.containers(), [{ Names: [`/${web.slug}`] }])
  })

  await t.test('while a switch is undone no visitor is left without an answer', async t => {
    const tried = 'never for long'
    await web.push(sample(tried))
    const seen: string[] = []
    const failures: string[] = []
    const ask = async (): Promise<void> => {
      await fetch(address).then(
        async answer => {
          const text = await answer.text()
          if (answer.status !== 200) failures.push(`${answer.status} ${text}`)
          else if (seen.at(-1) !== text) seen.push(text)
        },
        (error: Error) => failures.push(String(error.cause ?? error))
      )
    }
    let isOver = false
    const visitors = Array.from({ length: 4 }, async () => {
      while (!isOver) await ask()
    })
    let slow: Promise<string> | undefined
    before = async () => {
      await until(() => seen.includes(tried), 'visitors see the new version')
      // Its head is here: the new version has begun to answer.
      slow = (await fetch(`${address}/slow`)).text().catch((error: Error) => `cut: ${error.message}`)
    }
    faultAt = 'before record'
    t.match(await web.deployed(), { status: 'failed', step: 'switch' })
    faultAt = undefined
    before = async () => {}
    const back = seen.length
    t.equal(await serving(), version)
    isOver = true
    await Promise.all(visitors)
    t.same(failures, [])
    t.equal(await slow, `${tried} to its end`, 'what the new version has begun is finished there')
    t.notOk(seen.slice(back).includes(tried), 'nobody sees the new version when the deploy has ended')
    t.same([seen[0], seen.at(-1)], [version, version])
    t.match(await web.containers(), [{ Names: [`/${web.slug}`] }])
  })

  const finished = [
    'after record',
    'before drain',
    'after drain',
    'before clean-up',
    'after clean-up'
  ] as const
  const late = rotatingSample('a fault at a boundary behind the record', finished, {
    always: ['after record'],
    others: 1
  })
  for (const boundary of finished.filter(one => late.has(one))) {
    await t.test(`${boundary}: the new version serves, and the old one is cleaned up later`, async t => {
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
    })
  }
})
