import { join } from 'node:path'
import { TestClient } from 'busbar/sdk/testing'
import { type Benchmark, millis, oursAtMost, percent, type Row } from './benchmark.js'
import { expect } from './rig/expect.js'
import { removeFolder, temporaryFolder } from './rig/leftovers.js'
import { startPlatform } from './rig/platform.js'
import { median, medianRatio } from './statistics.js'

const pairs = 100
const warmUp = 20
const account = { email: 'ada@example.com', password: 'correct horse battery' }

/** What the time of a refused login tells of whether the account exists: nothing. */
export const logins: Benchmark = {
  name: 'logins',
  title: `Logins: ${pairs} refused ones each, in turn, of an account that exists and of accounts that do not`,
  async run() {
    const directory = await temporaryFolder()
    const process = await startPlatform('folders', join(directory, 'platform.log'), {
      BUSBAR_DIR: join(directory, 'data'),
      DATABASE_URL: '',
      TRUST_PROXY: '127.0.0.1',
      // Behind a proxy the network may reach it.
      SETUP_CODE: setupCode
    })
    try {
      return await measure(new TestClient(`http://127.0.0.1:${process.ready.port}`))
    } finally {
      await process.stop()
      await removeFolder(directory)
    }
  }
}

const setupCode = 'for-the-measurement-only'

async function measure(client: TestClient): Promise<Row[]> {
  expect(await client.post('/api/auth/setup', { ...account, code: setupCode }), 201)
  let addresses = 0
  /** From an address of its own each time: neither the limit nor the lock-out plays a part. */
  const timeOf = async (email: string): Promise<number> => {
    const ip = `10.${(addresses >> 16) & 255}.${(addresses >> 8) & 255}.${addresses++ & 255}`
    const startedAt = performance.now()
    const answer = await client.post(
      '/api/auth/login',
      { email, password: 'not the password' },
      { headers: { 'x-forwarded-for': ip } }
    )
    const took = performance.now() - startedAt
    expect(answer, 401)
    return took
  }
  const known: number[] = []
  const unknown: number[] = []
  for (let n = -warmUp; n < pairs; n++) {
    const sides = [
      { times: known, email: account.email },
      { times: unknown, email: `nobody${n + warmUp}@example.com` }
    ]
    // The first of a round finds the caches as the other left them.
    for (const { times, email } of n % 2 === 0 ? sides : sides.reverse()) {
      const took = await timeOf(email)
      if (n >= 0) times.push(took)
    }
  }
  const [ours, reference] = [median(known), median(unknown)]
  return [
    {
      measure: 'a known account, against an unknown one',
      ours: millis(ours),
      reference: millis(reference),
      ratio: medianRatio(known, unknown)
    },
    {
      measure: 'difference of the medians',
      ours: percent((100 * Math.abs(ours - reference)) / Math.max(ours, reference)),
      goal: oursAtMost(10)
    }
  ]
}
