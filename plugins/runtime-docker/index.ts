import { projectDirectory, projectTeardown } from 'busbar/api/projects'
import { definePlugin, healthChecks, kernel } from 'busbar/sdk'
import { containerRuntime } from './api.js'
import { DockerRuntime } from './docker-runtime.js'
import { followCrashes } from './engine-crash.js'
import { readInstanceId } from './instance-id.js'
import { LifeSigns } from './life-signs.js'
import { networkTeardown, sweepNetworks } from './network-removal.js'

export default definePlugin({
  id: 'runtime-docker',
  needs: { clock: kernel.clock, instance: kernel.instance, projects: projectDirectory },
  async start ({ use, log }) {
    const instanceId = await readInstanceId(use.instance)
    const runtime = new DockerRuntime({ instanceId, clock: use.clock, log, environment: name => use.instance.environment(name) })
    const lifeSigns = new LifeSigns(await use.instance.directory(), use.clock, log)
    return {
      runtime,
      teardown: networkTeardown(runtime, log),
      recover: async (signal: AbortSignal) => { await followCrashes({ runtime, lifeSigns, clock: use.clock, log }, signal) },
      sweep: async (signal: AbortSignal) => { await sweepNetworks(runtime, use.projects, log, signal) }
    }
  },
  provides (provide, { runtime }) {
    provide(containerRuntime, runtime)
  },
  contributes (contribute, { runtime, teardown }) {
    contribute(healthChecks, 'docker', { check: async () => `ok (${(await runtime.info()).containers} containers)` })
    contribute(projectTeardown, 'runtime-docker', teardown)
  },
  singletons (singleton) {
    singleton({ name: 'networks', run: async ({ signal }, { sweep }) => { await sweep(signal) } })
    singleton({ name: 'crash-recovery', run: async ({ signal }, { recover }) => { await recover(signal) } })
  }
})
