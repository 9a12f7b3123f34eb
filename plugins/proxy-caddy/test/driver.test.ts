import { type Test, test } from 'tap'
import { driverContract } from '../../domains/test/driver-contract.js'
import { guardContract } from '../../domains/test/guard-contract.js'
import { caddyLab } from './caddy-lab.js'

test('Caddy is a proxy driver', async t => {
  const make = async (t: Test) => (await caddyLab(t)).driver
  await driverContract(t, make)
  await guardContract(t, make)
})
