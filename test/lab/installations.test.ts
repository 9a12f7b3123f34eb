import { randomUUID } from 'node:crypto'
import { test } from 'tap'
import { leftByTests } from '../../lab/installations.js'
import { bridgePrefix, installationTag } from '../../plugins/runtime-docker/host/installation-tag.js'

test('what is left is that of tests by the id or the tag of an installation that they have taken away', t => {
  const [ours, foreign] = [randomUUID(), randomUUID()]
  const of = (id: string): string[] => [
    `container 0123456789ab /web of busybox:lab of the installation ${id}`,
    `network 0123456789ab busbar-shop of the installation ${id}`,
    `image 0123456789ab shop:1 {"busbar-image-instance":"${id}"}`,
    `control group /sys/fs/cgroup/memory/busbar${installationTag(id)}`,
    `interface ${bridgePrefix(id)}01234567`,
    `iptables :BUSBAR-${installationTag(id)}-IN - [0:0]`
  ]
  const others = ['in /tmp something', 'process 1 node', 'image 0123456789ab <none>:<none> {}']
  t.same(leftByTests([...of(ours), ...others, ...of(foreign)], [ours]), of(ours))
  t.same(leftByTests(of(foreign), []), [])
  t.same(leftByTests(['database t_1_0'], []), ['database t_1_0'], 'the test cluster is nobody else’s')
  t.end()
})
