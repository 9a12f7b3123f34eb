import { createTestKernel } from 'busbar/sdk/testing'
import { loggingProxy } from './files-lab.js'

/** A platform in a process of its own, to be killed, that follows an access log. */
const { url, directory, path } = JSON.parse(process.argv[2] ?? '{}') as {
  readonly url: string
  readonly directory: string
  readonly path: string
}

const k = await createTestKernel({
  state: { database: { url, drop: async () => {} }, directory },
  inline: [loggingProxy(path)]
})
console.log(JSON.stringify({ url: k.url }))
