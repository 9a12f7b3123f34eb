import { randomUUID } from 'node:crypto'
import { engineTest, startLab } from './lab.js'

engineTest(
  'the 31st project has its network, although the default ranges of the engine end at 30',
  async t => {
    const { runtime, docker, instanceId } = startLab(t)
    const projects = Array.from({ length: 31 }, () => randomUUID())
    for (const id of projects) await runtime.ensureNetwork({ id, slug: `p${id.slice(0, 8)}` })
    const made = await docker.listNetworks({ filters: { label: [`busbar-instance=${instanceId}`] } })
    t.equal(new Set(made.map(({ IPAM }) => IPAM?.Config?.[0]?.Subnet)).size, 31)
  }
)
