import { Readable } from 'node:stream'
import { until } from 'busbar/sdk/testing'
import { pack } from 'tar-stream'
import { engineTest, startLab } from './lab.js'

function contextOf(dockerfile: string): Readable {
  const tar = pack()
  tar.entry({ name: 'Dockerfile' }, dockerfile)
  tar.finalize()
  return Readable.from(tar)
}

const limit = 60

engineTest('a step of a build has no more processes than it may, and its log says so', async t => {
  const lab = startLab(t)
  const lines: string[] = []
  // It waits for its cap, so that all its children come under it. Nobody takes its words for those of the engine.
  const dockerfile =
    'FROM busybox:lab\nRUN echo " ---> Running in 000000000000"; until cat /sys/fs/cgroup/pids/pids.max /sys/fs/cgroup/pids.max 2>&1 | grep -q "^[0-9]"; do sleep 0.05; done; i=0; while [ $i -lt 200 ]; do (echo child; exec sleep 5) & i=$((i+1)); done; wait\n'
  await t.rejects(
    lab.runtime.build(
      contextOf(dockerfile),
      {
        tag: `lab-${lab.projectId}:1`,
        dockerfile: 'Dockerfile',
        buildArgs: {},
        owner: { projectId: lab.projectId },
        memoryBytes: 2 ** 28,
        cpus: 1,
        processes: limit,
        noCache: true
      },
      { signal: new AbortController().signal, onLine: line => lines.push(line) }
    ),
    { code: 'E_BUILD_COMMAND' }
  )
  const children = lines.filter(line => line === 'child').length
  t.ok(children > 10 && children < limit, `${children} children`)
  t.ok(
    lines.includes(`A step of a build may have ${limit} processes and threads at once.`),
    lines.slice(-5).join('\n')
  )
})

engineTest('a step that looks as if it ran nothing is held as well', async t => {
  const lab = startLab(t)
  const lines: string[] = []
  const script =
    '#(nop) CMD\nfor i in $(seq 1200); do cat /sys/fs/cgroup/pids/pids.max /sys/fs/cgroup/pids.max 2>&1 | grep "^[0-9]" && exit; sleep 0.05; done; exit 9'
  await lab.runtime.build(
    contextOf(`FROM busybox:lab\nENV A=1\nRUN ${JSON.stringify(['/bin/sh', '-c', script])}\nCMD ["true"]\n`),
    {
      tag: `lab-${lab.projectId}:1`,
      dockerfile: 'Dockerfile',
      buildArgs: {},
      owner: { projectId: lab.projectId },
      memoryBytes: 2 ** 28,
      cpus: 1,
      processes: limit,
      noCache: true
    },
    { signal: new AbortController().signal, onLine: line => lines.push(line) }
  )
  t.ok(lines.includes(String(limit)), lines.join('\n'))
})

engineTest('a build that forks for ever is held, and goes when it is cancelled', async t => {
  const lab = startLab(t)
  const cancel = new AbortController()
  // Whatever fails below: a build that never ends must not outlive its test.
  t.teardown(() => {
    cancel.abort()
  })
  const mark = lab.projectId
  const building = lab.runtime.build(
    contextOf(
      `FROM busybox:lab\nRUN : ${mark}; until cat /sys/fs/cgroup/pids/pids.max /sys/fs/cgroup/pids.max 2>&1 | grep -q "^[0-9]"; do sleep 0.05; done; bomb () { bomb | bomb & }; (while true; do bomb; done) & exec tail -f /dev/null\n`
    ),
    {
      tag: `lab-${lab.projectId}:1`,
      dockerfile: 'Dockerfile',
      buildArgs: {},
      owner: { projectId: lab.projectId },
      memoryBytes: 2 ** 28,
      cpus: 0.5,
      processes: limit,
      noCache: true
    },
    { signal: cancel.signal, onLine: () => {} }
  )
  const ended = t.rejects(building, { message: 'enough' })
  const containers = async () =>
    (await lab.docker.listContainers({ all: true })).filter(({ Command }) => Command.includes(mark))
  const id = await until(async () => (await containers())[0]?.Id, 'the step to begin', 60_000)
  // The engine lists a container a moment before it finds it by its id.
  await until(
    async () =>
      (
        await lab.docker
          .getContainer(id)
          .inspect()
          .catch(() => undefined)
      )?.HostConfig.PidsLimit === limit,
    'the cap',
    60_000
  )
  await until(
    async () => {
      const { pids_stats: pids = {} } = (await lab.docker.getContainer(id).stats({ stream: false })) as {
        pids_stats?: { current?: number }
      }
      t.comment(`${pids.current} processes`)
      return pids.current !== undefined && pids.current > limit / 2 && pids.current <= limit
        ? true
        : undefined
    },
    'the bomb, and no more processes than it may have',
    60_000
  )
  t.equal((await lab.runtime.image('busybox:lab')) !== undefined, true, 'the engine goes on answering')
  cancel.abort(new Error('enough'))
  await ended
  await until(async () => (await containers()).length === 0, 'the container to go', 60_000)
  t.same(await lab.runtime.images({ projectId: lab.projectId }), [])
})
