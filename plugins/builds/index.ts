import { definePlugin, kernel } from 'busbar/sdk'
import { containerRuntime } from 'busbar/api/runtime-docker'
import { lookup } from 'node:dns/promises'
import { Admission, AdmittedPreparation } from './admission.js'
import { buildAdmission, builders, imagePreparation } from './api.js'
import { CacheClearingStore } from './cache-clearings.js'
import { DockerfileBuilder } from './dockerfile-builder.js'
import { GitSource } from './git-source.js'
import { parseHostPolicy } from './host-policy.js'
import { SourceToImage } from './image-preparation.js'
import { m001 } from './migrations/001-create-cache-clearing.js'
import { buildLimits, minutes, settings } from './settings.js'
import { Workspaces } from './workspace.js'

export default definePlugin({
  id: 'builds',
  needs: {
    db: kernel.database,
    runtime: containerRuntime,
    exec: kernel.exec,
    clock: kernel.clock,
    instance: kernel.instance,
    secrets: kernel.secrets,
    builders
  },
  config: settings,
  migrations: [m001],
  async start ({ use, config, log }) {
    const { runtime, exec, clock, instance, secrets } = use
    const workspaces = new Workspaces(instance, log)
    await workspaces.removeLeftovers(clock.now())
    const git = new GitSource({
      exec,
      clock,
      hostPolicy: () => parseHostPolicy(instance.environment('GIT_PRIVATE_HOSTS'), instance.loopbackOnly),
      lookup: async host => await lookup(host, { all: true, verbatim: true }),
      clean: text => secrets.clean(text),
      maxCheckoutBytes: config.checkout_mib * 2 ** 20
    })
    const admission = new Admission({ runtime, instance, clock, settings: config })
    return {
      admission,
      dockerfile: new DockerfileBuilder(runtime, buildLimits(config)),
      preparation: new SourceToImage({
        runtime,
        builders: use.builders,
        git,
        workspaces,
        secrets,
        clock,
        clearings: new CacheClearingStore(use.db),
        buildMinutes: minutes(instance.environment('BUILD_TIMEOUT_MINUTES'), 30),
        pullMinutes: minutes(instance.environment('IMAGE_PULL_TIMEOUT_MINUTES'), 10)
      })
    }
  },
  provides (provide, self) {
    provide(imagePreparation, new AdmittedPreparation(self.preparation, self.admission))
    provide(buildAdmission, self.admission)
  },
  contributes (contribute, self) {
    contribute(builders, 'dockerfile', self.dockerfile)
  }
})
