import { availableParallelism } from 'node:os'
import { containerRuntime } from 'busbar/api/containers'
import { createTestKernel } from 'busbar/sdk/testing'
import { test } from 'tap'
import { requireEngine } from '../../../lab/engine.js'
import { checkLimits } from '../resource-limits.js'

const mebi = 2 ** 20

test('limits with which no container would start are refused, and none is always possible', async t => {
  const refused = (limits: object, cores: number | undefined, field: string, message: RegExp) =>
    t.throws(() => checkLimits(limits, cores), { status: 400, message, details: { field } })
  refused(
    { memory_limit: 1 },
    2,
    'memory_limit',
    /^memory_limit must be 6291456 bytes \(6 MiB\) or more, or 0/
  )
  refused({ memory_limit: 6 * mebi - 1 }, 2, 'memory_limit', /6 MiB/)
  refused({ cpu_limit: 0.001 }, undefined, 'cpu_limit', /0\.01 cores or more/)
  refused({ cpu_limit: 2.01 }, 2, 'cpu_limit', /^cpu_limit must be 2 or less, as the machine has 2 cores/)
  for (const limits of [
    {},
    { cpu_limit: 0, memory_limit: 0 },
    { cpu_limit: 0.01, memory_limit: 6 * mebi },
    { cpu_limit: 2 }
  ])
    t.doesNotThrow(() => checkLimits(limits, 2))
  t.doesNotThrow(() => checkLimits({ cpu_limit: 500 }, undefined))
})

test('they are refused when they are set, by what the engine says of its machine', async t => {
  if (!(await requireEngine(t))) return
  const k = await createTestKernel()
  t.teardown(() => k.close())
  const { cores } = await k.service(containerRuntime).info()
  t.equal(cores, availableParallelism())
  const ann = await k.as.session('ann')
  const { id } = (await ann.post('/api/projects', { name: 'x', slug: 'limits' })).body
  const all = `/api/projects/${id}/applications`
  const image = { name: 'web', type: 'image', build_type: 'image', source_image: 'busybox:lab' }
  t.match(await ann.post(all, { ...image, cpu_limit: 1000 }), {
    status: 400,
    body: { code: 'E_APPLICATION_INVALID', field: 'cpu_limit', error: `cpu_limit must be ${cores} or less` }
  })
  const created = await ann.post(all, { ...image, cpu_limit: cores })
  t.equal(created.status, 201)
  const path = `${all}/${created.body.id}/resources`
  t.match(await ann.put(path, { memory_limit: 1 }), { status: 400, body: { field: 'memory_limit' } })
  t.match(await ann.put(path, { cpu_limit: cores + 1 }), { status: 400, body: { field: 'cpu_limit' } })
  t.match(await ann.put(path, { cpu_limit: 0, memory_limit: 64 * mebi }), {
    status: 200,
    body: { cpu_limit: 0, memory_limit: 64 * mebi }
  })
})
