import { until } from 'busbar/sdk/testing'
import { test } from 'tap'
import { requireEngine } from '../../../lab/engine.js'
import { engine } from '../../deployments/test/deploy-lab.js'
import {
  builders,
  type EngineKind,
  execIn,
  has,
  linesOf,
  openEngineLab,
  port,
  sample,
  settingsOf
} from './engine-lab.js'

/** How long thousands of processes may take to begin on a machine that has other things to do. */
const busyMs = 120_000

/** In either version of control groups. */
const processesOfSteps = [
  'sh',
  '-c',
  'cd /sys/fs/cgroup; cat pids/steps/pids.current steps/pids.current 2>/dev/null'
]

/** What a build cannot do in each kind of build engine, and what becomes of one in trouble. */
export function testEngineLimits(name: string, kind: EngineKind): void {
  void test(`${name}, and what its builds may not`, async t => {
    if (!(await requireEngine(t))) return
    const lab = await openEngineLab(t, kind)

    await t.test('a step sees nothing of the daemon, and has no IPv6', async t => {
      const application = await lab.application('curious', {
        ...sample('curious'),
        Dockerfile: `FROM busybox:lab
RUN ls /dev /run /var/run && find / -xdev -type s && test -z "$(find / -xdev -type s; find /dev -type s)"
RUN for f in /proc/sys/net/ipv6/conf/eth*/disable_ipv6; do test ! -e $f || test $(cat $f) = 1 || exit 1; done
RUN ! ip addr show dev eth0 | grep inet6 && ip addr show dev eth0 | grep 'inet 192.0.2.'
${port}`
      })
      const deployed = await application.deployed()
      t.equal(deployed.status, 'success', linesOf(deployed).join('\n'))
    })

    await t.test(
      'an engine whose daemon has more memory than it may have from now on is begun anew',
      async t => {
        const application = await lab.application('smaller', sample('smaller'))
        t.equal((await application.deployed()).status, 'success')
        const [builder] = await builders(lab.projectId)
        await execIn(builder?.Id ?? '', '', [
          'sh',
          '-c',
          // In memory that belongs to the container as the daemon's does.
          'mkdir -p /held && mount -t tmpfs -o size=700m tmpfs /held && dd if=/dev/zero of=/held/x bs=1M count=600'
        ])
        await lab.k.configure('builds', { ...settingsOf(kind), memory_mib: 256 })
        await application.push(sample('even smaller'))
        const deployed = await application.deployed()
        t.equal(deployed.status, 'success', JSON.stringify(deployed.error_message))
        await lab.k.configure('builds', settingsOf(kind))
      }
    )

    await t.test('an engine whose network has gone meanwhile is made anew, and keeps its cache', async t => {
      const application = await lab.application('offline', sample('offline'))
      t.equal((await application.deployed()).status, 'success')
      const [builder] = await builders(lab.projectId)
      const container = engine.getContainer(builder?.Id ?? '')
      const [network = ''] = Object.keys((await container.inspect()).NetworkSettings.Networks)
      await container.stop({ t: 1 })
      await engine.getNetwork(network).remove()
      await application.push(sample('online'))
      const deployed = await application.deployed()
      t.equal(deployed.status, 'success', JSON.stringify(deployed.error_message))
      t.ok(has(linesOf(deployed), /WORKDIR .* is taken from the cache|is taken from the cache/))
    })

    await t.test('a step that takes too much memory ends its own build', async t => {
      const application = await lab.application('hungry', {
        ...sample('hungry'),
        Dockerfile: `FROM busybox:lab\nRUN tail /dev/zero\n${port}`
      })
      t.match(await application.deployed(), { status: 'failed', error_message: /killed \(exit code 137\)/ })
      await application.push(sample('sated'))
      const deployed = await application.deployed()
      t.equal(deployed.status, 'success', JSON.stringify(deployed.error_message))
    })

    await t.test('a step that takes every process leaves the engine some', async t => {
      const application = await lab.application('bomb', {
        ...sample('bomb'),
        Dockerfile: `FROM busybox:lab
RUN fill() { while true; do sleep 4322 & done; }; trap "" TERM INT; (fill) 2>/dev/null; echo filled; exec sleep 4321
${port}`
      })
      const { id } = await application.deploy()
      const path = `${application.path}/deployments/${id}`
      const admin = await lab.k.as.session()
      // Builds come one after the other: one that never ends would fail those after it.
      t.teardown(async () => await admin.post(`${path}/cancel`, {}))
      await until(
        async () => /filled\\?"/.test((await admin.get(path)).body.build_logs ?? ''),
        'the step has taken every process',
        busyMs
      )
      const [builder] = await builders(lab.projectId)
      // Its memory may end first, and then it takes more than one attempt to begin anything beside it.
      const many = await until(
        async () => {
          const count = Number(await execIn(builder?.Id ?? '', '', processesOfSteps))
          return count > 1000 ? count : undefined
        },
        'the step has more than 1000 processes',
        busyMs
      )
      t.ok(many)
      t.equal((await admin.post(`${path}/cancel`, {})).status, 202)
      t.match(await application.ended(id), { status: 'failed', error_message: /cancel/ })
      t.equal(await execIn(builder?.Id ?? '', 'sleep 4322'), '0')
      await application.push(sample('calm'))
      const deployed = await application.deployed()
      t.equal(deployed.status, 'success', JSON.stringify(deployed.error_message))
      const [same] = await builders(lab.projectId)
      t.equal(same?.Id, builder?.Id, 'the engine was neither replaced')
      t.equal(same?.State, 'running', 'nor stopped')
    })

    await t.test('a build that is cancelled has ended', async t => {
      const application = await lab.application('endless', {
        ...sample('endless'),
        Dockerfile: `FROM busybox:lab\nRUN trap "" TERM INT; echo waiting; while true; do sleep 4321; done\n${port}`
      })
      const { id } = await application.deploy()
      const path = `${application.path}/deployments/${id}`
      const admin = await lab.k.as.session()
      t.teardown(async () => await admin.post(`${path}/cancel`, {}))
      await until(
        async () => /waiting\\?"/.test((await admin.get(path)).body.build_logs ?? ''),
        'the step runs'
      )
      const [builder] = await builders(lab.projectId)
      t.match(await execIn(builder?.Id ?? '', 'sleep 4321'), /[1-9]/)
      t.equal((await admin.post(`${path}/cancel`, {})).status, 202)
      t.match(await application.ended(id), { status: 'failed', error_message: /cancel/ })
      await until(async () => (await execIn(builder?.Id ?? '', 'sleep 4321')) === '0', 'the step has ended')
    })

    // An older one, as that of Docker 26, takes minutes to put such variables in.
    if (kind.docker >= 28)
      await t.test('an image that is refused leaves its engine free', async t => {
        const doubled = (name: string, of: string): string => `ARG ${name}=${of.repeat(16)}`
        const application = await lab.application('endless-labels', {
          ...sample('endless labels'),
          Dockerfile: [
            'FROM busybox:lab',
            `ARG A0=${'x'.repeat(60)}`,
            doubled('A1', '$A0'),
            doubled('A2', '$A1'),
            doubled('A3', '$A2'),
            `LABEL ${['a', 'b', 'c', 'd', 'e', 'f', 'g', 'h', 'i', 'j', 'k', 'l'].map(key => `${key}=$A3`).join(' ')}`,
            port
          ].join('\n')
        })
        t.match(await application.deployed(), { status: 'failed', error_message: /has \d{7,} bytes/ })
        const [builder] = await builders(lab.projectId)
        const inspected = engine.getContainer(builder?.Id ?? '').inspect()
        let answer: unknown
        void inspected.then(seen => {
          answer = seen
        })
        await until(() => answer !== undefined, 'the engine says what the container is')
        t.pass()
      })

    await t.test('a short disk takes the caches of projects that build nothing', async t => {
      const application = await lab.application('kept', sample('kept'))
      t.equal((await application.deployed()).status, 'success')
      t.equal((await builders(lab.projectId)).length, 1)
      // More than any disk has free.
      await lab.k.configure('builds', { ...settingsOf(kind), disk_floor_mib: 2 ** 30 })
      t.match(await application.deployed(), { status: 'failed', error_message: /disk/ })
      await until(
        async () => (await builders(lab.projectId)).length === 0,
        'the engine has gone with its cache'
      )
      await lab.k.configure('builds', settingsOf(kind))
      t.equal((await application.deployed()).status, 'success')
    })
  })
}
