import { until } from 'busbar/sdk/testing'
import { engineTest, type Lab, startLab } from './lab.js'

const forever = new AbortController().signal

async function said(lab: Lab, id: string, script: string): Promise<string[]> {
  const lines: string[] = []
  await lab.runtime.exec(id, ['sh', '-c', script], {
    onLine: ({ text }) => lines.push(text),
    signal: forever
  })
  return lines
}

const network = async ({ runtime, projectId, instanceId }: Lab): Promise<string> =>
  await runtime.ensureNetwork({ id: projectId, slug: instanceId.slice(0, 8) })

engineTest(
  'a container that runs others mounts, and makes namespaces and control groups inside its own',
  async t => {
    const lab = startLab(t)
    const id = await lab.runtime.create(
      lab.spec('engine', await network(lab), {
        runsContainers: true,
        caps: 'standard',
        readonlyRootfs: false,
        processes: 512,
        memoryLimit: 128 * 2 ** 20,
        volumes: [{ volume: `busbar-test-${lab.projectId}`, path: '/var/lib/docker' }]
      })
    )
    await lab.runtime.start(id)
    t.same(
      await said(
        lab,
        id,
        `set -e
        cd /var/lib/docker; mkdir l u w m; echo lower > l/f
        mount -t overlay overlay -o lowerdir=l,upperdir=u,workdir=w m
        cat m/f
        unshare -m -p -f -n sh -c 'echo pid $$; mount -t tmpfs tmpfs /tmp && echo mounted'
        ip link add name inner0 type bridge && echo bridge
        for group in $(awk '$3 == "cgroup" || $3 == "cgroup2" { print $2 }' /proc/mounts) /sys/fs/cgroup /proc/sys; do mount -o remount,bind,rw $group; done
        groups=/sys/fs/cgroup/pids; [ -d $groups ] || groups=/sys/fs/cgroup
        mkdir $groups/inner && echo group
        grep NoNewPrivs /proc/self/status | tr '\\t' ' '
        echo score $(cat /proc/1/oom_score_adj)
        echo groups $(cut -d: -f3 /proc/self/cgroup | sort -u)`
      ),
      ['lower', 'pid 1', 'mounted', 'bridge', 'group', 'NoNewPrivs: 0', 'score 0', 'groups /']
    )
    const { HostConfig } = await lab.docker.getContainer(id).inspect()
    t.match(HostConfig, {
      Privileged: false,
      PidsLimit: 512,
      Memory: 128 * 2 ** 20,
      Binds: null,
      PidMode: ''
    })
    t.same(HostConfig.CapAdd?.map((name: string) => name.replace(/^CAP_/, '')).sort(), [
      'NET_ADMIN',
      'SYS_ADMIN'
    ])
  }
)

engineTest('its limit on processes holds for the control groups that it makes', async t => {
  const lab = startLab(t)
  const id = await lab.runtime.create(
    lab.spec('few', await network(lab), { runsContainers: true, caps: 'standard', processes: 24 })
  )
  await lab.runtime.start(id)
  const lines = await said(
    lab,
    id,
    `for group in $(awk '$3 == "cgroup" || $3 == "cgroup2" { print $2 }' /proc/mounts) /sys/fs/cgroup; do mount -o remount,bind,rw $group; done
    groups=/sys/fs/cgroup/pids; [ -d $groups ] || groups=/sys/fs/cgroup
    mkdir $groups/inner && echo $$ > $groups/inner/cgroup.procs
    for i in $(seq 60); do sleep 20 & done 2>&1`
  )
  t.match(lines.join('\n'), /fork/)
})

engineTest('a container that is not to be started again is not, by whatever start', async t => {
  const lab = startLab(t)
  const id = await lab.runtime.create(
    lab.spec('once', await network(lab), { restarts: false, command: ['sh', '-c', 'sleep 0.2; exit 3'] })
  )
  const ended = async (): Promise<void> => {
    await lab.runtime.start(id)
    t.match(
      await until(async () => {
        const state = await lab.runtime.inspect(id)
        return state?.status === 'exited' ? state : undefined
      }, 'it has ended'),
      { exitCode: 3 }
    )
    const seen = await lab.docker.getContainer(id).inspect()
    t.equal(seen.HostConfig.RestartPolicy?.Name, 'no')
    t.equal(seen.RestartCount, 0)
  }
  await ended()
  const { FinishedAt } = (await lab.docker.getContainer(id).inspect()).State
  await lab.runtime.recover({ lostAt: new Date(Date.parse(FinishedAt) - 1000), backAt: new Date() })
  t.equal((await lab.runtime.inspect(id))?.status, 'exited', 'nor after an outage')
  await lab.runtime.stop(id, 1)
  await ended()
})

engineTest('an image does not say that its containers are not started again', async t => {
  const lab = startLab(t)
  const image = `lab-${lab.projectId}:labelled`
  const made = await lab.docker.createContainer({ Image: 'busybox:lab' })
  await made.commit({ repo: `lab-${lab.projectId}`, tag: 'labelled', changes: 'LABEL busbar-restarts=no' })
  await made.remove()
  t.teardown(async () => await lab.docker.getImage(image).remove({ force: true }))
  const id = await lab.runtime.create(lab.spec('labelled', await network(lab), { image }))
  await lab.runtime.start(id)
  await lab.runtime.stop(id, 1)
  await lab.runtime.start(id)
  const { HostConfig } = await lab.docker.getContainer(id).inspect()
  t.equal(HostConfig.RestartPolicy?.Name, 'unless-stopped')
  await lab.runtime.remove(id)
})
