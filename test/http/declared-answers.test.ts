import { allow, definePlugin, Problem, problemTable } from 'busbar/sdk'
import { createTestKernel } from 'busbar/sdk/testing'
import { test } from 'tap'

const problems = problemTable({ full: [409, 'E_TEA_FULL', 'the pot is full'] })

/** It answers by the word in the path. */
const tea = definePlugin({
  id: 'tea',
  routes(route) {
    route({
      method: 'GET',
      url: '/api/tea/:word',
      summary: 'Make Tea',
      access: allow.public('a test'),
      problems: [problems.full],
      handler: ({ params }) => {
        if (params.word === 'full') throw problems.full()
        if (params.word === 'coffee') throw new Problem(418, 'E_TEA_POT', 'this is a teapot')
        return null
      }
    })
  }
})

test('a platform of the test kit does not close well when something was answered that is not declared', async t => {
  const k = await createTestKernel({ inline: [{ manifest: { id: 'tea' }, definition: tea }] })
  t.equal((await k.as.anonymous().get('/api/tea/coffee')).status, 418)
  await t.rejects(k.close(), { message: 'answered, but not declared: GET /api/tea/:word 418' })
})

test('the test kit lists what was answered and is not declared, and then closes well', async t => {
  const k = await createTestKernel({ inline: [{ manifest: { id: 'tea' }, definition: tea }] })
  t.teardown(() => k.close())
  const anybody = k.as.anonymous()
  t.equal((await anybody.get('/api/tea/green')).status, 200)
  t.equal((await anybody.get('/api/tea/full')).status, 409)
  t.equal((await anybody.get('/api/nothing')).status, 404, 'what is no operation is not compared')
  await k.disable('tea')
  t.match(await anybody.get('/api/tea/green'), { status: 404, body: { code: 'E_PLUGIN_OFF' } })
  t.same(k.undeclaredAnswers(), [])
  await k.enable('tea')
  t.equal((await anybody.get('/api/tea/coffee?with=milk')).status, 418)
  t.equal((await anybody.get('/api/tea/coffee')).status, 418)
  t.same(k.undeclaredAnswers(), ['GET /api/tea/:word 418'])
})
