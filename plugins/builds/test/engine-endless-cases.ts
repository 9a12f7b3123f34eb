import { until } from 'busbar/sdk/testing'
import { test } from 'tap'
import { requireEngine } from '../../../lab/engine.js'
import { builders, type EngineKind, openEngineLab, port, sample } from './engine-lab.js'

/** Dockerfiles and images without end. */
export function testEndlessBuilds(name: string, kind: EngineKind): void {
  void test(`${name}, and builds without end`, async t => {
    if (!(await requireEngine(t))) return
    const lab = await openEngineLab(t, kind)

    await t.test(
      'a Dockerfile of ten thousand instructions is refused, and so are as many layers',
      async t => {
        const times = (count: number, line: (at: number) => string): string =>
          Array.from({ length: count }, (_, at) => `${line(at)}\n`).join('')
        const application = await lab.application('endless', {
          ...sample('endless'),
          Dockerfile: `FROM busybox:lab\n${times(10_000, at => `ENV A${at}=x`)}${port}`
        })
        t.match(await application.deployed(), {
          status: 'failed',
          error_message: /the Dockerfile Dockerfile is not valid: there are more than 2000 instructions/
        })
        await application.push({
          Dockerfile: `FROM busybox:lab\n${times(140, at => `WORKDIR /${at}`)}${port}`
        })
        t.match(await application.deployed(), {
          status: 'failed',
          error_message: /more layers than an engine stacks upon one another/
        })
      }
    )

    // A newer one is done with it at once.
    if (!kind.isNew)
      await t.test('what a daemon goes on with after its build was ended ends with it', async t => {
        const application = await lab.application('busy', {
          ...sample('busy'),
          Dockerfile: `FROM busybox:lab\n${Array.from({ length: 1900 }, (_, at) => `ENV A${at}=x\n`).join('')}${port}`
        })
        const { id } = await application.deploy()
        const path = `${application.path}/deployments/${id}`
        const admin = await lab.k.as.session()
        t.teardown(async () => await admin.post(`${path}/cancel`, {}))
        await until(
          async () => /load metadata/.test((await admin.get(path)).body.build_logs ?? ''),
          'the daemon reads the Dockerfile'
        )
        const [before] = await builders(lab.projectId)
        t.equal((await admin.post(`${path}/cancel`, {})).status, 202)
        t.match(await application.ended(id), { status: 'failed', error_message: /cancel/ })
        const [after] = await builders(lab.projectId)
        t.same([after?.Id, after?.State], [before?.Id, 'exited'])
        await application.push(sample('calm'))
        const deployed = await application.deployed()
        t.equal(deployed.status, 'success', JSON.stringify(deployed.error_message))
      })
  })
}
