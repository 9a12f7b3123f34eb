import type { Readable } from 'node:stream'
import type {
  ContainerCaps,
  ContainerDiskUse,
  ContainerEvent,
  ContainerFileUse,
  ContainerRuntime,
  ContainerSpec,
  ContainerState,
  ContainerStats,
  EngineInfo,
  EngineOutage,
  ExecOptions,
  LogBatch,
  LogOptions,
  Owner,
  VolumeUsage
} from 'busbar/api/containers'
import type {
  BuildFileUse,
  BuildOptions,
  BuildStep,
  BuildUsage,
  BuiltImage,
  ImageInfo,
  ImageService,
  ImageUse,
  KeptSteps,
  LoadOptions
} from 'busbar/api/images'
import type { Clock, Log } from 'busbar/sdk'
import { BridgeNetworks } from './bridge-networks.js'
import { BuildCache } from './build-cache.js'
import { type ContainerAccess, short } from './container-access.js'
import { dialedAddress, routeConflictTo } from './container-address.js'
import { runInContainer } from './container-exec.js'
import { getFiles, putFiles } from './container-files.js'
import { listedContainers } from './container-list.js'
import { ContainerLives } from './container-lives.js'
import { ContainerOwners } from './container-owners.js'
import { openProgram } from './container-program.js'
import { containerState } from './container-state.js'
import { containerStats } from './container-stats.js'
import { lastLines } from './container-tail.js'
import { commandEnvironment, findEngine } from './engine-address.js'
import { EngineClient } from './engine-client.js'
import { type RecoveryParts, recoverContainers } from './engine-crash.js'
import { EngineDescription } from './engine-description.js'
import { engineEvents } from './events/engine-events.js'
import { SharedEvents } from './events/shared-events.js'
import type { FileHolders } from './file-holders.js'
import { unpauseAll } from './files/container-file-use.js'
import { DiskAccounts } from './files/disk-accounts.js'
import type { Footprint } from './footprint.js'
import { usualBuildHosts } from './host/build-hosts.js'
import type { LimitState } from './host/host-limits.js'
import type { HostTools } from './host/host-tools.js'
import { MachineLimits } from './host/machine-limits.js'
import { OrphanEnder } from './host/orphan-ender.js'
import { routesAround } from './host-ranges.js'
import { Identity, type Signatures } from './identity.js'
import { buildImage } from './image-build.js'
import { loadImage } from './image-load.js'
import { ImageUses } from './image-use.js'
import { Images } from './images.js'
import { DiskMeasure } from './inventory/disk-measure.js'
import { Inventory } from './inventory/inventory.js'
import { capOptions, guardLabelled } from './label-guard.js'
import { EngineLogs } from './logs/engine-logs.js'
import { ownContainerNames, PlatformContainer } from './platform-container.js'
import { problems } from './problems.js'
import { ProjectNetworks } from './project-network.js'
import type { LeftVolumes } from './removal/left-volumes.js'
import { removing } from './removal/removing.js'
import type { Settings } from './settings.js'
import { stepContainers, stepOwnerOf } from './step-containers.js'
import { copyMs, untilEngineRemoves } from './step-end.js'
import { endTerminal, openTerminal } from './terminal/container-terminal.js'
import type { VolumeContents } from './volume-contents.js'
import type { Volumes } from './volumes.js'

interface RuntimeDependencies {
  /** Tells this platform's things from those of another on the same engine. */
  readonly instanceId: string
  /** Proves what is ours: labels say it of anything. */
  readonly signatures: Signatures
  readonly clock: Clock
  readonly log: Log
  readonly settings: Omit<Settings, 'instance_id'>
  /** Programs of the platform's machine; without them, those of the engine's are run in a container of it. */
  readonly localTools?: HostTools
}

/** Containers and images through the API of one Docker Engine. */
export class DockerRuntime implements ContainerRuntime, ImageService {
  readonly #engine: EngineClient
  readonly #identity: Identity
  readonly #owners: ContainerOwners
  readonly #access: ContainerAccess
  readonly #lives: ContainerLives
  readonly #images: Images
  readonly #buildCache: BuildCache
  readonly #imageUses: ImageUses
  /** Of the builds and loads that run now. */
  readonly #footprints = new Set<Footprint>()
  readonly #bridges: BridgeNetworks
  readonly #networks: ProjectNetworks
  readonly limits: MachineLimits
  readonly #recovery: RecoveryParts
  readonly #platform: PlatformContainer
  readonly platformPorts = async () => await this.#platform.publishedPorts()
  readonly #volumes: Volumes
  readonly #files: FileHolders
  readonly #contents: VolumeContents
  readonly leftVolumes: LeftVolumes
  readonly disk: DiskAccounts
  /** Everything on the engine. */
  readonly inventory: Inventory
  readonly #description: EngineDescription
  readonly #logs: EngineLogs
  readonly #events: SharedEvents

  constructor(private readonly dependencies: RuntimeDependencies) {
    const { settings, instanceId, log } = dependencies
    const engine = new EngineClient(settings)
    const identity = new Identity(instanceId, dependencies.signatures)
    this.#engine = engine
    this.#identity = identity
    this.#owners = new ContainerOwners(engine, identity, log)
    const measure = new DiskMeasure({ ...dependencies, engine })
    const found = { ...dependencies, engine, identity, owners: this.#owners, measure }
    const { access, volumes, files, contents, leftVolumes } = removing(found)
    this.#access = access
    this.#volumes = volumes
    this.#files = files
    this.#contents = contents
    this.leftVolumes = leftVolumes
    this.limits = new MachineLimits({
      engine,
      instanceId,
      log,
      ports: settings.host_ports,
      connections: settings.max_container_connections,
      projects: async () => await this.#networks.owners(),
      buildHosts: settings.build_private_hosts ?? usualBuildHosts(false),
      subnets: settings.subnets.text.split(',').map(range => range.trim())
    })
    this.#bridges = new BridgeNetworks({
      engine,
      instanceId,
      identity,
      limits: this.limits,
      routes: async () =>
        await routesAround({ engine, instanceId, log, place: async () => await this.#description.place() }),
      pools: settings.subnets
    })
    this.#networks = new ProjectNetworks(this.#bridges, identity, instanceId)
    this.#images = new Images({ engine, instanceId, identity })
    const { groups } = this.limits
    const orphans = new OrphanEnder({ ...found, groups })
    this.#recovery = { ...found, orphans }
    this.#lives = new ContainerLives({ ...found, access, images: this.#images, files, groups, orphans })
    this.#buildCache = new BuildCache({ engine, identity })
    this.#imageUses = new ImageUses({ engine, identity, list: async () => await this.#buildCache.listing() })
    this.#platform = new PlatformContainer(engine, ownContainerNames(settings.own_container))
    this.#description = new EngineDescription({ ...dependencies, engine, platform: this.#platform })
    this.#logs = new EngineLogs(engine, this.#description)
    this.#events = new SharedEvents((reading, signal) =>
      engineEvents({ ...dependencies, engine, owners: this.#owners }, reading, signal)
    )
    this.inventory = new Inventory({ ...found, platform: this.#platform })
    const buildPlaces = async () =>
      (
        await Promise.all([...this.#footprints].map(async footprint => (await footprint.places?.()) ?? []))
      ).flat()
    this.disk = new DiskAccounts({ ...found, volumes, platform: this.#platform, buildPlaces })
  }

  async info(options?: { readonly maxAgeMs?: number }): Promise<EngineInfo> {
    return await this.#description.read(options)
  }

  async ensureNetwork(project: { readonly id: string; readonly slug: string }): Promise<string> {
    return await this.#networks.ensure(project)
  }

  async removeNetworks(projectId: string): Promise<void> {
    await this.#networks.remove(projectId, async networkId => await this.#platform.leave(networkId))
    if ((await this.#networks.owners()).length > 0) return
    // With the last project go the rules that are there for all of them.
    await this.limits.refresh().catch((error: unknown) => {
      this.dependencies.log.warn(
        { err: error },
        'what is left of the rules for networks that are gone is not taken away'
      )
    })
  }

  async ensureBuildNetwork(projectId: string): Promise<string> {
    return await this.#networks.ensureForBuilds(projectId)
  }

  /** Whether containers of this installation are kept from the machine they run on. */
  get hostLimits(): LimitState {
    return this.limits.packets.state
  }

  /** The projects that have a network on the engine. */
  async networkOwners(): Promise<readonly string[]> {
    return await this.#networks.owners()
  }

  /** Nothing may be asked of it any more, and what was is given up. */
  close(): void {
    this.#engine.close()
  }

  /**
   * Undoes what the death of an engine does beyond its own end. Started again, it stops the containers that
   * have outlived it as if a person had, and forgets those that it was about to start.
   */
  async recover(outage: EngineOutage): Promise<void> {
    await recoverContainers(this.#recovery, outage)
  }

  async create(spec: ContainerSpec): Promise<string> {
    return await this.#lives.create(spec)
  }

  async start(containerId: string): Promise<void> {
    await this.#lives.start(containerId)
  }

  /** A look at the files of one may have been cut off, with its process. */
  async goOnWithPaused(): Promise<void> {
    await unpauseAll(this.#engine, this.dependencies.instanceId)
  }

  async restart(containerId: string, graceSeconds: number): Promise<void> {
    await this.#lives.restart(containerId, graceSeconds)
  }

  async stop(containerId: string, graceSeconds: number): Promise<void> {
    await this.#lives.stop(containerId, graceSeconds)
  }

  async remove(...[id, options = {}]: Parameters<ContainerRuntime['remove']>): Promise<void> {
    const seen = await this.#access.own(id)
    if (seen === undefined) return await options.onGone?.()
    await this.#lives.beforeRemoval(seen)
    await this.#access.remove(seen).then(options.onGone)
    if (options.filesMs !== undefined) await this.leftVolumes.waitFor(seen.Id, options.filesMs)
  }

  async removeLeftFiles(owner: Owner): Promise<void> {
    await this.#files.removeLeft(owner, 0)
  }

  async removeBuildStep(id: string): Promise<void> {
    const seen = await this.#access.find(id)
    if (seen === undefined) return
    if (stepOwnerOf(seen, this.#identity) === undefined)
      throw problems.containerForeign({ container: seen.Name.slice(1) })
    // To take the container away would not stop the copy, and its image would come when it is not looked for any more.
    const ms = copyMs(seen.State, this.dependencies.clock.now())
    if (ms > 0) await untilEngineRemoves(this.#engine, id, ms)
    await this.#access.remove(seen)
  }

  async rename(containerId: string, name: string): Promise<void> {
    await this.#lives.rename(containerId, name)
  }

  async inspect(containerId: string): Promise<ContainerState | undefined> {
    const seen = await this.#access.find(containerId)
    const owner = seen === undefined ? undefined : this.#owners.ofInspected(seen)
    return seen === undefined || owner === undefined ? undefined : containerState(seen, owner)
  }

  async list(owner: Owner): Promise<readonly ContainerState[]> {
    const { instanceId } = this.dependencies
    return await listedContainers(
      { engine: this.#engine, instanceId, look: async id => await this.inspect(id) },
      owner
    )
  }

  async dial(containerId: string, port: number): Promise<{ readonly host: string; readonly port: number }> {
    const { network, host } = dialedAddress(await this.#access.running(containerId))
    await this.#platform.join(network)
    return { host, port }
  }

  async routeConflict(containerId: string): Promise<string | null> {
    const seen = await this.#access.find(containerId)
    // What is sent to an engine on another machine leaves this one by some other way in any case.
    if (seen?.State.Running !== true || (await this.#description.place()) === 'elsewhere') return null
    return await routeConflictTo(seen)
  }

  async tail(containerId: string, lines: number): Promise<readonly string[]> {
    return await lastLines(this.#engine, await this.#access.existing(containerId), lines)
  }

  async *logs(containerId: string, options: LogOptions): AsyncGenerator<LogBatch> {
    const { Config: config } = await this.#access.existing(containerId)
    yield* this.#logs.read({ containerId, hasTerminal: config.Tty }, options)
  }

  async exec(containerId: string, command: readonly string[], options: ExecOptions): Promise<number> {
    await this.#access.running(containerId)
    return await runInContainer(this.#engine, containerId, command, options)
  }

  async openProgram(...[containerId, command, options]: Parameters<ContainerRuntime['openProgram']>) {
    await this.#access.running(containerId)
    return await openProgram(this.#engine, containerId, command, options)
  }

  async openTerminal(...[containerId, command, options]: Parameters<ContainerRuntime['openTerminal']>) {
    await this.#access.running(containerId)
    return await openTerminal(this.#engine, containerId, command, options)
  }

  async endTerminal(containerId: string, terminalId: string): Promise<void> {
    const seen = await this.#access.own(containerId)
    if (seen?.State.Running === true) await endTerminal(this.#engine, containerId, terminalId)
  }

  async setCaps(containerId: string, caps: ContainerCaps): Promise<void> {
    await this.#access.running(containerId)
    await this.#engine.call(`limit the container ${short(containerId)}`, async docker => {
      await docker.getContainer(containerId).update(capOptions(caps))
    })
  }

  async putFiles(...[containerId, directory, tar, options]: Parameters<ContainerRuntime['putFiles']>) {
    await putFiles({ engine: this.#engine, access: this.#access }, containerId, directory, tar, options)
  }

  async getFiles(...[containerId, path, options]: Parameters<ContainerRuntime['getFiles']>) {
    return await getFiles({ engine: this.#engine, access: this.#access }, containerId, path, options)
  }

  async stats(containerId: string): Promise<ContainerStats> {
    await this.#access.verified(containerId)
    return await containerStats(this.#engine, containerId)
  }

  async diskUse(...asked: Parameters<ContainerRuntime['diskUse']>): Promise<readonly ContainerDiskUse[]> {
    return await this.disk.bytes(...asked)
  }

  async fileUse(...asked: Parameters<ContainerRuntime['fileUse']>): Promise<readonly ContainerFileUse[]> {
    return await this.disk.files(...asked)
  }

  async image(reference: string): Promise<ImageInfo | undefined> {
    return await this.#images.find(reference)
  }

  async images(owner: Owner): Promise<readonly BuiltImage[]> {
    return await this.#images.list(owner)
  }

  async removeImage(reference: string): Promise<void> {
    await this.#images.remove(reference)
  }

  async imageUse(limits: Parameters<ImageService['imageUse']>[0]): Promise<readonly ImageUse[]> {
    return await this.#imageUses.read(limits)
  }

  async continuedImages(): Promise<ReadonlySet<string>> {
    return await this.#buildCache.continued()
  }

  async imageLabels(owner: Owner): Promise<Readonly<Record<string, string>>> {
    return this.#identity.ofImage(owner)
  }

  async load(archive: Readable, options: LoadOptions): Promise<ImageInfo> {
    const { clock } = this.dependencies
    return await loadImage(
      {
        engine: this.#engine,
        identity: this.#identity,
        images: this.#images,
        footprints: this.#footprints,
        clock
      },
      archive,
      options
    )
  }

  async save(reference: string, signal: AbortSignal): Promise<Readable> {
    return await this.#images.save(reference, signal)
  }

  async build(
    context: Readable,
    options: BuildOptions,
    progress: Parameters<ImageService['build']>[2]
  ): Promise<ImageInfo> {
    return await buildImage(
      {
        engine: this.#engine,
        identity: this.#identity,
        clock: this.dependencies.clock,
        network: async projectId => await this.#networks.ensureForBuilds(projectId),
        parentGroup: async projectId => await this.limits.groups.parentOf(projectId),
        images: this.#images,
        cache: this.#buildCache,
        footprints: this.#footprints,
        // Images name no deployment; of an application one build runs at a time.
        steps: async ({ deploymentId: _, ...owner }) => await this.buildSteps(owner)
      },
      context,
      options,
      progress
    )
  }

  async buildSteps(owner: Owner): Promise<readonly BuildStep[]> {
    return await stepContainers(
      this.#engine,
      { instanceId: this.dependencies.instanceId, identity: this.#identity },
      owner
    )
  }

  async buildUsage(): Promise<readonly BuildUsage[]> {
    return await Promise.all([...this.#footprints].map(async footprint => await footprint.measure()))
  }

  async buildFileUse(...asked: Parameters<ImageService['buildFileUse']>): Promise<readonly BuildFileUse[]> {
    return await this.disk.buildFiles(...asked)
  }

  async buildCacheBytes(owner: Owner): Promise<number> {
    return await this.#buildCache.bytes(owner)
  }

  async clearBuildCache(owner: Owner, keep?: KeptSteps): Promise<void> {
    await this.#buildCache.clear(owner, keep)
  }

  async commandEnvironment(): Promise<Readonly<Record<string, string>>> {
    return commandEnvironment(findEngine(this.dependencies.settings))
  }

  async ensureVolume(name: string, owner: Owner): Promise<void> {
    await this.#volumes.ensure(name, owner)
  }

  async volumes(owner: Owner): Promise<readonly VolumeUsage[]> {
    return await this.#volumes.list(owner)
  }

  async volumeNames(owner: Owner): Promise<readonly string[]> {
    return await this.#volumes.names(owner)
  }

  async volumeUsers(name: string): Promise<readonly string[]> {
    return await this.#volumes.users(name)
  }

  async readVolume(...asked: Parameters<ContainerRuntime['readVolume']>): Promise<Readable> {
    return await this.#contents.read(...asked)
  }

  async fillVolume(...asked: Parameters<ContainerRuntime['fillVolume']>): Promise<void> {
    await this.#contents.fill(...asked)
  }

  async exchangeVolumes(...[name, other, how]: Parameters<ContainerRuntime['exchangeVolumes']>) {
    await this.#contents.exchange(name, other, how?.isResumed ?? false)
  }

  async endVolumeCalls(name: string): Promise<void> {
    await this.#contents.release(name)
  }

  async removeVolume(name: string): Promise<void> {
    await this.#volumes.remove(name)
  }

  async releaseVolume(name: string): Promise<void> {
    await this.#volumes.release(name)
  }

  async capLabelled(...[label, caps, options]: Parameters<ContainerRuntime['capLabelled']>): Promise<void> {
    await guardLabelled(this.#engine, label, caps, options)
  }

  events(signal: AbortSignal): AsyncIterable<ContainerEvent> {
    return this.#events.follow(signal)
  }
}
