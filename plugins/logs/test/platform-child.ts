import { createTestKernel } from 'busbar/sdk/testing'

/** A platform in a process of its own, to be killed. */
const { url, directory } = JSON.parse(process.argv[2] ?? '{}') as {
  readonly url: string
  readonly directory: string
}

const k = await createTestKernel({ state: { database: { url, drop: async () => {} }, directory } })
console.log(JSON.stringify({ url: k.url }))
