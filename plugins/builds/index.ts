import { applicationBuildTypes, applicationGates, applicationTeardown } from 'busbar/api/applications'
import { containerRuntime } from 'busbar/api/runtime-docker'
import { definePlugin, kernel } from 'busbar/sdk'
import { lookup } from 'node:dns/promises'
import { Admission, AdmittedPreparation } from './admission/admission.js'
import { buildAdmission, builders, buildLeftovers, imagePreparation, type Builder } from './api.js'
import { listBuilders } from './builders/builder-list.js'
import { BuildpacksBuilder } from './builders/buildpacks-builder.js'
import { CacheClearingStore } from './cache/cache-clearings.js'
import { CacheService } from './cache/cache-service.js'
import { DockerfileBuilder } from './builders/dockerfile-builder.js'
import { GitSource } from './git/git-source.js'
import { parseHostPolicy } from './git/host-policy.js'
import { resolveHost } from './git/host-resolution.js'
import { SourceToImage } from './image-preparation.js'
import { LatestBuildStore } from './cache/latest-builds.js'
import { StepLeftovers } from './cache/leftovers.js'
import { m001 } from './migrations/001-create-cache-clearing.js'
import { m002 } from './migrations/002-create-latest-build.js'
import { m003 } from './migrations/003-create-private-image.js'
import { NixpacksBuilder } from './builders/nixpacks-builder.js'
import { PrivateImageStore, sweepPrivateImages } from './registry/private-images.js'
import { RailpackBuilder } from './builders/railpack-builder.js'
import { routes } from './routes.js'
import type { BuilderAnswer } from './schemas.js'
import { buildLimits, minutes, settings } from './settings.js'
import { StaticBuilder } from './builders/static-builder.js'
import { Workspaces } from './context/workspace.js'

/** The running plugin. */
export interface Builds {
  readonly admission: Admission
  readonly preparation: SourceToImage
  readonly caches: CacheService
  readonly leftovers: StepLeftovers
  readonly sweep: (signal: AbortSignal) => Promise<void>
  /** Its own, by build type. */
  readonly own: Readonly<Record<string, Builder>>
  readonly listBuilders: () => Promise<BuilderAnswer[]>
  readonly buildTypes: () => readonly string[]
}

export default definePlugin({
  id: 'builds',
  needs: {
    db: kernel.database,
    runtime: containerRuntime,
    exec: kernel.exec,
    clock: kernel.clock,
    instance: kernel.instance,
    secrets: kernel.secrets,
    gates: applicationGates,
    builders
  },
  config: settings,
  migrations: [m001, m002, m003],
  async start ({ use, config, log }): Promise<Builds> {
    const { runtime, exec, clock, instance, secrets } = use
    const workspaces = new Workspaces(instance, log)
    await workspaces.removeLeftovers(clock.now())
    const hosts = {
      hostPolicy: () => parseHostPolicy(instance.environment('GIT_PRIVATE_HOSTS'), instance.loopbackOnly),
      lookup: async (host: string) => await lookup(host, { all: true, verbatim: true })
    }
    const gitLimits = { checkoutBytes: config.checkout_mib * 2 ** 20, fetchMs: 15 * 60_000, silenceSeconds: 60 }
    const git = new GitSource({ exec, clock, ...hosts, clean: text => secrets.clean(text), limits: gitLimits })
    const limits = buildLimits(config)
    const clearings = new CacheClearingStore(use.db)
    const latest = new LatestBuildStore(use.db)
    const privateImages = new PrivateImageStore(use.db)
    const tools = { exec, runtime, instance, usualLimits: limits, log }
    return {
      admission: new Admission({ runtime, instance, clock, settings: config }),
      own: {
        dockerfile: new DockerfileBuilder(runtime, limits, privateImages),
        static: new StaticBuilder({ runtime, limits, serverImage: config.static_image, buildImage: config.static_build_image }),
        railpack: new RailpackBuilder(tools),
        buildpacks: new BuildpacksBuilder({ ...tools, builderImage: config.buildpacks_builder, privateImages, checkHost: async host => { await resolveHost(host, hosts) } }),
        nixpacks: new NixpacksBuilder(tools)
      },
      caches: new CacheService({ ...use, clearings, latest }),
      leftovers: new StepLeftovers(runtime, latest),
      sweep: async signal => { await sweepPrivateImages({ store: privateImages, runtime, clock, log }, signal) },
      buildTypes: () => use.builders.keys(),
      listBuilders: async () => await listBuilders(use.builders),
      preparation: new SourceToImage({
        runtime,
        builders: use.builders,
        git,
        workspaces,
        secrets,
        clock,
        clearings,
        latest,
        privateImages,
        buildMinutes: minutes(instance.environment('BUILD_TIMEOUT_MINUTES'), 30),
        pullMinutes: minutes(instance.environment('IMAGE_PULL_TIMEOUT_MINUTES'), 10)
      })
    }
  },
  provides (provide, self) {
    provide(imagePreparation, new AdmittedPreparation(self.preparation, self.admission))
    provide(buildAdmission, self.admission)
    provide(buildLeftovers, self.leftovers)
  },
  contributes (contribute, { own, caches, buildTypes }) {
    for (const [buildType, builder] of Object.entries(own)) contribute(builders, buildType, builder)
    contribute(applicationBuildTypes, 'builds', { buildTypes })
    contribute(applicationTeardown, 'builds', { teardown: async applicationId => { await caches.teardown(applicationId) } })
  },
  routes,
  singletons (singleton) {
    singleton({ name: 'private-images', run: async ({ signal }, { sweep }) => { await sweep(signal) } })
  }
})
