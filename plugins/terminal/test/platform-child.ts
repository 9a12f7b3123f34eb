import { createTestKernel } from 'busbar/sdk/testing'

/** A platform of its own, to be killed; it says where it listens. */
const { url, directory, environment } = JSON.parse(process.argv[2] ?? '{}') as {
  url: string
  directory: string
  environment: Record<string, string>
}
const k = await createTestKernel({
  state: { database: { url, drop: async () => {} }, directory },
  environment
})
console.log(JSON.stringify({ url: k.url }))
