import { until } from 'busbar/sdk/testing'
import { test } from 'tap'
import { requireEngine } from '../../../lab/engine.js'
import { engine, openLab, sample } from '../../deployments/test/deploy-lab.js'

const mebibyte = 2 ** 20

/** Two stages: the first makes 6 MiB that no image needs afterwards. */
const twoStages = (version: string) =>
  sample(
    version,
    'ok',
    `FROM busybox:lab AS make
RUN dd if=/dev/zero of=/big bs=1M count=6
RUN echo ready > /ready
FROM node:20
WORKDIR /app
COPY --from=make /ready .
COPY . .
CMD ["node", "server.js"]
`
  )

void test('the cache of an application is what its builds have left beside its images; cleared, its next build starts anew', async t => {
  if (!(await requireEngine(t))) return
  const lab = await openLab()
  t.teardown(async () => await lab.close())
  const admin = await lab.k.as.session()
  const application = await lab.application('cached', twoStages('one'))
  const other = await lab.application('beside', twoStages('two'))
  const cacheOf = async ({ path }: { readonly path: string }): Promise<any> =>
    (await admin.get(`${path}/cache`)).body
  t.same(
    await cacheOf(application),
    { build_cache_bytes: 0, launch_cache_bytes: 0, total_bytes: 0 },
    'nothing was built yet'
  )

  const first = await application.deployed()
  t.match(first, { status: 'success' }, first.error_message ?? '')
  t.match(await other.deployed(), { status: 'success' })
  const { build_cache_bytes: bytes, ...rest } = await cacheOf(application)
  t.ok(
    bytes >= 6 * mebibyte && bytes < 7 * mebibyte,
    `${bytes as number}: the first stage, and nothing of the base images or of the image that runs`
  )
  t.same(rest, { launch_cache_bytes: 0, total_bytes: bytes })

  t.match(await application.deployed(), { status: 'success', build_logs: /Using cache/ })
  t.match(await admin.delete(`${application.path}/cache`), { status: 200, body: { status: 'cleared' } })
  t.equal((await cacheOf(application)).total_bytes, 0)
  t.ok((await cacheOf(other)).total_bytes >= 6 * mebibyte, 'that of another application stays')

  const [container] = await application.containers()
  t.ok(await engine.getImage(container?.ImageID ?? '').inspect(), 'the image that runs is there')
  t.ok(await engine.getImage(first.image_tag).inspect(), 'so is the one before, for a rollback')
  t.equal(await (await fetch((await application.read()).direct_url)).text(), 'one')

  const anew = await application.deployed()
  t.match(anew, { status: 'success' })
  t.notMatch(anew.build_logs, /Using cache/)
  t.match(await application.deployed(), { status: 'success', build_logs: /Using cache/ }, 'only that one')
  t.match(await other.deployed(), { status: 'success', build_logs: /Using cache/ })

  await t.test('a clearing is not forgotten by a restart, nor by a build that fails', async t => {
    t.equal((await admin.delete(`${application.path}/cache`)).status, 200)
    await lab.restart()
    await application.push({ Dockerfile: 'FROM busybox:lab\nRUN false\n' })
    t.match(await application.deployed(), { status: 'failed' })
    await application.push(twoStages('three'))
    const after = await application.deployed()
    t.match(after, { status: 'success' })
    t.notMatch(after.build_logs, /Using cache/)
  })

  await t.test('what is left of failed builds counts, and goes with the application', async t => {
    const session = await lab.k.as.session()
    const failing = await lab.application('failing', {
      Dockerfile: 'FROM busybox:lab\nRUN dd if=/dev/zero of=/half bs=1M count=3\nRUN false\n'
    })
    t.match(await failing.deployed(), { status: 'failed' })
    t.ok((await session.get(`${failing.path}/cache`)).body.total_bytes >= 3 * mebibyte)
    t.equal((await session.delete(failing.path)).status, 200)
    await until(
      async () =>
        (await engine.listImages({ all: true, filters: { label: [`application-id=${failing.id}`] } }))
          .length === 0,
      'no step of it is on the engine'
    )
  })
})
