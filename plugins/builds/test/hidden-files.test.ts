import { randomUUID } from 'node:crypto'
import { imagePreparation } from 'busbar/api/builds'
import { until } from 'busbar/sdk/testing'
import type Docker from 'dockerode'
import { test } from 'tap'
import { requireSecondEngine, startSecondEngine } from '../../../lab/second-engine.js'
import { type DeployLab, type LabApplication, openLab } from '../../deployments/test/deploy-lab.js'

const mebi = 2 ** 20
const served = 'CMD ["httpd", "-f", "-p", "8080"]\n'

const slowly = (command: string, times: number): string =>
  `i=0; while [ $i -lt ${times} ]; do ${command}; i=$((i+1)); sleep 0.1; done`
const ways = {
  'in a file without a name': `RUN exec 3>/hidden && rm /hidden && ${slowly('dd if=/dev/zero bs=1M count=5 >&3 2>/dev/null', 90)}; sleep 100`,
  'in a volume': `VOLUME /kept\nRUN ${slowly('dd if=/dev/zero of=/kept/$i bs=1M count=5 2>/dev/null', 90)}; sleep 100`
}

test('a build that hides what it writes ends where the disk is short, and that of another user goes on', async t => {
  if (!(await requireSecondEngine(t))) return
  const engine = await startSecondEngine({ images: ['busybox:lab'], diskBytes: 560 * mebi })
  t.teardown(() => engine.close())
  const lab = await openLab({ environment: engine.environment, docker: engine.docker })
  t.teardown(() => lab.close())
  await lab.k.configure('builds', { disk_floor_mib: 200, memory_mib: 512, cpus: 0.5, concurrent: 2 })
  const small = await lab.ofUser('member', 'small', { Dockerfile: '' })
  const hiding = await lab.ofUser('stranger', 'hiding', { Dockerfile: '' })
  for (const [where, step] of Object.entries(ways))
    await t.test(where, async t => {
      await small.push({
        Dockerfile: `FROM busybox:lab\nRUN dd if=/dev/zero of=/${where.length} bs=1M count=10 && until [ -e /go ]; do sleep 0.2; done\n${served}`
      })
      await hiding.push({
        Dockerfile: `FROM busybox:lab\nRUN dd if=/dev/zero of=/named bs=1M count=30\n${step}\n${served}`
      })
      const building = prepare(lab, small)
      building.catch(() => {})
      const steps = async () => await waiting(engine.docker)
      await until(async () => (await steps()).length > 0, 'the small build to be at its step', 60_000)
      t.match(await hiding.deployed(), {
        status: 'failed',
        error_message: /the build was stopped: only .*it has written .* in volumes or in files without a name/
      })
      for (const { Id } of await steps()) {
        const exec = await engine.docker.getContainer(Id).exec({ Cmd: ['touch', '/go'] })
        await exec.start({})
      }
      await t.resolves(building)
    })
})

const waiting = async (docker: Docker) =>
  (await docker.listContainers()).filter(({ Command }) => Command.includes('until [ -e /go ]'))

/** Not by a deploy: two of them may have to wait for one another while the machine is busy. */
async function prepare({ k }: DeployLab, application: LabApplication): Promise<unknown> {
  const { source_repo, project_id } = await application.read()
  return await k.service(imagePreparation).prepare(
    {
      applicationId: application.id,
      deploymentId: randomUUID(),
      projectId: project_id,
      slug: application.slug,
      source: {
        type: 'git',
        repo: source_repo,
        branch: 'main',
        token: null,
        rootDirectory: '',
        dockerfilePath: ''
      },
      buildType: 'dockerfile',
      builderImage: null,
      customBuildpacks: [],
      variables: []
    },
    {
      secrets: { redact: () => {}, clean: text => text },
      signal: new AbortController().signal,
      log: () => {},
      onCommit: async () => {}
    }
  )
}
