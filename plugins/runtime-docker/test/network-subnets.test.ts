import { randomUUID } from 'node:crypto'
import { hostRanges } from '../host-ranges.js'
import { parseRange } from '../subnet.js'
import { engineTest, startLab } from './lab.js'

const range = (text: string) =>
  parseRange(text) ??
  (() => {
    throw new Error(text)
  })()

engineTest(
  'the subnet of a project that has gone is not that of the next one while others are free',
  async t => {
    const { runtime, docker } = startLab(t, { environment: { BUSBAR_SUBNETS: '10.199.7.0/24' } })
    const make = async (id: string): Promise<string | undefined> => {
      const name = await runtime.ensureNetwork({ id, slug: `n${id.slice(0, 8)}` })
      return (await docker.getNetwork(name).inspect()).IPAM?.Config?.[0]?.Subnet
    }
    // What holds for all projects is put up for this one, and stays as it does.
    t.equal(await make(randomUUID()), '10.199.7.0/26')
    const given: Array<string | undefined> = []
    for (let n = 0; n < 4; n++) {
      const id = randomUUID()
      given.push(await make(id))
      await runtime.removeNetworks(id)
    }
    t.same(
      given,
      ['10.199.7.64/26', '10.199.7.128/26', '10.199.7.192/26', '10.199.7.64/26'],
      'from the beginning when it is at the end'
    )
  }
)

engineTest('many networks made at once by two platforms get subnets that do not overlap', async t => {
  const [one, two] = [startLab(t), startLab(t)]
  const projects = Array.from({ length: 6 }, () => randomUUID())
  const names = await Promise.all(
    projects.map(
      async (id, index) =>
        await (index % 2 === 0 ? one : two).runtime.ensureNetwork({ id, slug: `c${id.slice(0, 8)}` })
    )
  )
  const networks = await one.docker.listNetworks({ filters: { name: names } })
  const subnets = networks.map(network => network.IPAM?.Config?.[0]?.Subnet)
  t.equal(subnets.length, 6)
  t.equal(new Set(subnets).size, 6)
})

engineTest(
  'a foreign network in the range is passed over, and one with the wanted name is refused',
  async t => {
    const { runtime, docker, projectId } = startLab(t, { environment: { BUSBAR_SUBNETS: '10.219.0.0/24' } })
    const slug = `f${projectId.slice(0, 8)}`
    const foreign = await docker.createNetwork({
      Name: `foreign-${slug}`,
      IPAM: { Driver: 'default', Config: [{ Subnet: '10.219.0.0/25' }] }
    })
    const namesake = await docker.createNetwork({
      Name: `busbar-${slug}`,
      IPAM: { Driver: 'default', Config: [{ Subnet: '10.219.1.0/24' }] }
    })
    t.teardown(async () => {
      await foreign.remove()
      await namesake.remove()
    })

    await t.rejects(runtime.ensureNetwork({ id: projectId, slug }), {
      status: 409,
      code: 'E_NETWORK_NAME_TAKEN',
      message: new RegExp(`busbar-${slug}`)
    })
    const name = await runtime.ensureNetwork({ id: projectId, slug: `${slug}-b` })
    t.match(await docker.getNetwork(name).inspect(), { IPAM: { Config: [{ Subnet: '10.219.0.128/26' }] } })
  }
)

// An engine that was killed and started anew elsewhere leaves such bridges; their range must not be used twice.
engineTest('the range of a bridge that nothing is plugged into counts as in use', async t => {
  const { runtime, docker, projectId } = startLab(t)
  await runtime.ensureNetwork({ id: projectId, slug: `r${projectId.slice(0, 8)}` })
  const [network] = await docker.listNetworks({ filters: { label: [`project-id=${projectId}`] } })
  const subnet = range(network?.IPAM?.Config?.[0]?.Subnet ?? '')
  t.ok((await hostRanges()).some(({ first, last }) => first === subnet.first && last === subnet.last))
})

engineTest('the end of the range is explained, and so is a range that is none', async t => {
  const small = startLab(t, { environment: { BUSBAR_SUBNETS: '10.218.0.0/26' } })
  await small.runtime.ensureNetwork({ id: randomUUID(), slug: `e${small.projectId.slice(0, 8)}` })
  await t.rejects(
    small.runtime.ensureNetwork({ id: small.projectId, slug: `g${small.projectId.slice(0, 8)}` }),
    {
      status: 409,
      code: 'E_NETWORK_SUBNETS_EXHAUSTED',
      message: /every \/26 subnet of 10\.218\.0\.0\/26 is in use: set BUSBAR_SUBNETS/
    }
  )
  t.throws(() => startLab(t, { environment: { BUSBAR_SUBNETS: 'ten' } }), {
    message: /^BUSBAR_SUBNETS is "ten"; it takes IPv4 ranges/
  })
})
