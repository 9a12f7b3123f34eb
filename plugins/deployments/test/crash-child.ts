import { definePlugin } from 'busbar/sdk'
import { createTestKernel } from 'busbar/sdk/testing'
import { rolloutHooks } from '../api.js'

/** A platform of its own that stops for ever at one boundary, to be killed there. */
const { url, directory, boundary, environment } = JSON.parse(process.argv[2] ?? '{}') as {
  url: string
  directory: string
  boundary: string
  environment: Record<string, string>
}

const boundaryHook = definePlugin({
  id: 'boundary-hook',
  contributes(contribute) {
    contribute(rolloutHooks, 'boundary-hook', {
      async at(reached) {
        if (reached !== boundary) return
        console.log(JSON.stringify({ reached }))
        await new Promise(() => {})
      }
    })
  }
})

const k = await createTestKernel({
  state: { database: { url, drop: async () => {} }, directory },
  environment,
  inline: [
    { manifest: { id: 'boundary-hook', requires: { deployments: '^0.1.0' } }, definition: boundaryHook }
  ]
})
console.log(JSON.stringify({ url: k.url }))
