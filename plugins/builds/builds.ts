import { lookup } from 'node:dns/promises'
import {
  applicationBuildTypes,
  applicationGates,
  applicationRegistry,
  applicationTeardown
} from 'busbar/api/applications'
import { containerRuntime } from 'busbar/api/containers'
import { imageService } from 'busbar/api/images'
import { buildkitBuilders, platformParts } from 'busbar/api/platform'
import { projectTeardown } from 'busbar/api/projects'
import { type RegistryTrial, registryAccounts, registryTrials } from 'busbar/api/registries'
import {
  type Contributor,
  configChecks,
  kernel,
  optional,
  type ServiceBinder,
  type StartContext,
  settleAll
} from 'busbar/sdk'
import { Admission } from './admission/admission.js'
import { AdmittedPreparation } from './admission/admitted-preparation.js'
import {
  type BuildEngineKind,
  type Builder,
  buildAdmission,
  buildCachePruner,
  buildEngines,
  builders,
  cachedImages,
  type EngineDiskReader,
  engineDisk,
  imagePreparation,
  type PreparedImages,
  preparedImages
} from './api.js'
import { builderFault, listBuilders } from './builders/builder-list.js'
import { ownBuilders } from './builders/own-builders.js'
import { CacheClearingStore } from './cache/cache-clearings.js'
import { StepCachePruner } from './cache/cache-pruner.js'
import { CacheService } from './cache/cache-service.js'
import { LatestBuildStore } from './cache/latest-builds.js'
import { sweepOrphanedImages } from './cache/orphaned-images.js'
import { Workspaces } from './context/workspace.js'
import { roomyArchiveLimit } from './disk/archive-limit.js'
import { DiskWatch, roomEveryMs } from './disk/disk-watch.js'
import { ImageRoom } from './disk/image-room.js'
import { endLargestHolder } from './disk/room-dispute.js'
import { RoomMaker } from './disk/room-maker.js'
import { removeUnclaimed } from './disk/unclaimed.js'
import { AvailableEngines } from './engines/available-engines.js'
import { EngineCaches } from './engines/engine-caches.js'
import { EngineHoldings } from './engines/engine-holdings.js'
import { EngineKinds, ownKinds } from './engines/engine-kinds.js'
import { EngineStore } from './engines/engine-store.js'
import { sweepIdleEngines, tidyEngines, trimCaches } from './engines/engine-sweep.js'
import { EngineUsage } from './engines/engine-usage.js'
import { ProjectEngines } from './engines/project-engines.js'
import { GitSource } from './git/git-source.js'
import { SourceToImage } from './image-preparation.js'
import { usualHostPolicy } from './network/host-policy.js'
import { registryTrial } from './registry/account-trial.js'
import { FetchedImageStore } from './registry/fetched-images.js'
import { FormerPrivateImages } from './registry/former-private-images.js'
import { ImageClaims } from './registry/image-claims.js'
import { ImageNameStore } from './registry/image-names.js'
import { removeUnusedImages, sweepUnusedImages } from './registry/image-removal.js'
import { findPinned, pinned } from './registry/pinned-image.js'
import { DeploymentAccounts } from './registry/pull-accounts.js'
import { hostedRegistries } from './registry/registries.js'
import { RegistryGate } from './registry/registry-gate.js'
import type { BuilderAnswer } from './schemas.js'
import { buildLimits, diskLimits, type Settings, toolVariablesOf } from './settings.js'
import { DeployKeyStore } from './ssh/deploy-key-store.js'
import { DeployKeys } from './ssh/deploy-keys.js'
import { HostKeyStore } from './ssh/host-key-store.js'

export const needs = {
  db: kernel.database,
  runtime: containerRuntime,
  imageService,
  applications: applicationRegistry,
  accounts: optional(registryAccounts),
  exec: kernel.exec,
  secrets: kernel.secrets,
  clock: kernel.clock,
  instance: kernel.instance,
  gates: applicationGates,
  builders,
  buildEngines,
  cachedImages
}

/** The running plugin. */
export interface Builds {
  readonly admission: Admission
  readonly preparation: AdmittedPreparation
  readonly caches: CacheService
  readonly deployKeys: DeployKeys
  readonly engines: ProjectEngines
  readonly cachePruner: StepCachePruner
  readonly prepared: PreparedImages
  readonly engineDisk: EngineDiskReader
  readonly registryTrial: RegistryTrial
  /** Removes unused fetched images, and what was built for applications that are gone, until its signal aborts. */
  readonly sweep: (signal: AbortSignal) => Promise<void>
  /** Its own, by build type. */
  readonly own: Readonly<Record<string, Builder>>
  readonly listBuilders: () => Promise<BuilderAnswer[]>
  readonly buildTypes: () => readonly string[]
  /** Its own. */
  readonly engineKinds: readonly BuildEngineKind[]
}

export async function startBuilds({
  use,
  config,
  log,
  onStop
}: StartContext<typeof needs, Settings>): Promise<Builds> {
  const { exec, clock, instance, runtime, imageService } = use
  const workspaces = new Workspaces(instance, log)
  onStop(async () => await workspaces.settled())
  await workspaces.removeLeftovers(clock.now())
  const hostPolicy = config.git_private_hosts ?? usualHostPolicy(instance.loopbackOnly)
  const hosts = {
    hostPolicy,
    lookup: async (host: string) => await lookup(host, { all: true, verbatim: true })
  }
  const gitLimits = {
    checkoutBytes: config.checkout_mib * 2 ** 20,
    fetchMs: 15 * 60_000,
    silenceSeconds: 60
  }
  const git = new GitSource({
    exec,
    clock,
    ...hosts,
    limits: gitLimits
  })
  const deployKeys = new DeployKeys({
    ...use,
    keys: new DeployKeyStore(use.db),
    hosts: new HostKeyStore(use.db)
  })
  const clearings = new CacheClearingStore(use.db)
  const latest = new LatestBuildStore(use.db)
  const names = new ImageNameStore(use.db)
  const claims = new ImageClaims({ db: use.db, clock, log, onEnd: () => room.noteUnneeded() })
  const records = new EngineStore(use.db, clock)
  const cacheBytes = config.build_cache_mib * 2 ** 20
  const kinds = new EngineKinds(use.buildEngines)
  const engines = new ProjectEngines({
    runtime,
    clock,
    log,
    records,
    kinds,
    cacheBytes
  })
  const engineCaches = new EngineCaches({ engines, records, clock, log, cacheBytes })
  const room = new RoomMaker({
    clock,
    remove: async () => {
      const [, isAll] = await settleAll([
        removeUnclaimed({ ...images, claims, cachedImages: use.cachedImages }),
        engineCaches.clear()
      ])
      return isAll
    }
  })
  const admission = new Admission({ runtime, instance, clock, settings: config, room })
  // An image is fetched for a pull, or in the time of a build.
  const longestFetchMs =
    (Math.max(config.build_timeout_minutes, config.image_pull_timeout_minutes) + 5) * 60_000
  const images = {
    clock,
    log,
    room: new ImageRoom({
      disks: async () => await admission.disks(),
      makeRoom: async () => await room.make(),
      othersHold: async deploymentId => await claims.othersHold(deploymentId),
      endLargest: async wanted => await endLargestHolder({ claims, diskWatch, imageService, log }, wanted),
      floorBytes: diskLimits(config).floorBytes,
      clock
    }),
    runtime,
    imageService,
    registries: hostedRegistries({ rules: hosts, clock, log, runtime }),
    accounts: new DeploymentAccounts(use.accounts),
    fetched: new FetchedImageStore(use.db, clock, names, longestFetchMs),
    formerImages: new FormerPrivateImages(use.db)
  }
  const cachePruner = new StepCachePruner({
    imageService,
    latest,
    clock,
    log,
    attemptBytes: config.failed_steps_mib * 2 ** 20
  })
  const engineUsage = new EngineUsage({
    runtime,
    clock,
    prune: async projectId => await engines.trim(projectId, 0),
    log
  })
  const engineHoldings = new EngineHoldings({ engines, records, engineUsage, clock })
  const diskWatch = new DiskWatch({
    buildUsage: async () => (await settleAll([imageService.buildUsage(), engineUsage.read()])).flat(),
    buildFileUse: async options =>
      (await settleAll([imageService.buildFileUse(options), engineUsage.readFiles(options)])).flat(),
    clock,
    log,
    limits: diskLimits(config),
    disks: async () => await admission.disks(),
    room
  })
  const preparation = new SourceToImage({
    ...images,
    builders: use.builders,
    git,
    workspaces,
    clock,
    clearings,
    latest,
    names,
    deployKeys,
    buildMinutes: config.build_timeout_minutes,
    pullMinutes: config.image_pull_timeout_minutes
  })
  return {
    admission,
    deployKeys,
    engines,
    engineDisk: {
      read: async () => {
        const found = (await admission.disks()).find(({ isEngines }) => isEngines)
        if (found === undefined) return undefined
        const { freeBytes, freeInodes: free, bytesPerInode: bytesEach } = found
        const inodes = free === undefined || bytesEach === undefined ? undefined : { free, bytesEach }
        return { freeBytes, floorBytes: diskLimits(config).floorBytes, inodes }
      },
      makeRoom: async () => await room.renew(roomEveryMs),
      caches: async () => await engineHoldings.read()
    },
    registryTrial: registryTrial({ rules: hosts, clock, log }),
    own: ownBuilders({
      ...images,
      engineUsage,
      availableEngines: new AvailableEngines(images, config, kinds),
      engines,
      exec,
      secrets: use.secrets,
      instance,
      variables: toolVariablesOf(config),
      names,
      gate: new RegistryGate(hosts),
      config,
      log,
      usualLimits: buildLimits(config),
      fetching: { hosts, maxBytes: gitLimits.checkoutBytes },
      archives: {
        exec,
        limit: async tooSmall =>
          await roomyArchiveLimit({ disks: async () => await admission.disks(), room, config }, tooSmall)
      }
    }),
    caches: new CacheService({ ...use, engines, clearings, latest, names, fetched: images.fetched, log }),
    prepared: {
      find: async (applicationId, reference) => await findPinned(images, applicationId, reference),
      keep: async (applicationId, references) => {
        await images.fetched.keep(applicationId, references)
        await removeUnusedImages(images)
      },
      fetched: async () =>
        (await images.fetched.kept()).map(({ applicationId, handle: name, ...image }) => ({
          applicationId,
          name,
          reference: pinned(image)
        })),
      release: async (applicationId, reference) => {
        if (!reference.includes('@')) return await imageService.removeImage(reference)
        await images.fetched.drop(applicationId, reference)
        await removeUnusedImages(images, { isShort: true })
      }
    },
    cachePruner,
    sweep: async signal => {
      await Promise.all([
        sweepUnusedImages(images, signal),
        sweepIdleEngines(
          {
            engines,
            records,
            clock,
            log,
            idleMs: config.build_engine_idle_minutes * 60_000
          },
          signal
        ),
        tidyEngines({ engines, records, clock, log }, signal),
        trimCaches({ caches: engineCaches, clock, log, maxBytes: config.build_caches_mib * 2 ** 20 }, signal),
        sweepOrphanedImages({ imageService, applications: use.applications, clock, log }, signal)
      ])
    },
    buildTypes: () => use.builders.keys(),
    engineKinds: ownKinds(config),
    listBuilders: async () => await listBuilders(use.builders, log),
    preparation: new AdmittedPreparation({
      preparation,
      admission,
      diskWatch,
      cachePruner,
      claims,
      workspaces
    })
  }
}

export function buildServices(
  provide: ServiceBinder,
  { preparation, prepared, admission, cachePruner, engineDisk: disk }: Builds
): void {
  provide(engineDisk, disk)
  provide(preparedImages, prepared)
  provide(imagePreparation, preparation)
  provide(buildAdmission, admission)
  provide(buildCachePruner, cachePruner)
}

/** The build types whose builders work through BuildKit. */
const workThroughBuildKit = ['railpack']

export function buildContributions(
  contribute: Contributor,
  {
    own,
    admission,
    caches,
    deployKeys,
    engines,
    engineKinds,
    buildTypes,
    listBuilders: list,
    registryTrial: trial
  }: Builds
): void {
  contribute(platformParts, 'builder', {
    parts: () => [
      {
        id: 'builder',
        name: 'Builder',
        description: 'Turns repositories into images',
        fault: async () => builderFault(await list())
      }
    ]
  })
  contribute(buildkitBuilders, 'builds', {
    areThere: () => workThroughBuildKit.some(name => buildTypes().includes(name))
  })
  contribute(configChecks, 'builds', { warnings: async () => await admission.warnings() })
  contribute(registryTrials, 'builds', trial)
  contribute(projectTeardown, 'builds', {
    teardown: async projectId => {
      await engines.remove(projectId)
    }
  })
  for (const [buildType, builder] of Object.entries(own)) contribute(builders, buildType, builder)
  for (const kind of engineKinds) contribute(buildEngines, kind.program.kind, kind)
  contribute(applicationBuildTypes, 'builds', { buildTypes })
  contribute(applicationTeardown, 'builds', {
    teardown: async applicationId => {
      await caches.teardown(applicationId)
      await deployKeys.teardown(applicationId)
    }
  })
}
