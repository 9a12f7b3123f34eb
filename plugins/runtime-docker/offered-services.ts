import type { ContainerRuntime, EngineInventory } from 'busbar/api/containers'
import type { ImageService } from 'busbar/api/images'

/** What other plugins may do with containers, and nothing that the runtime can do beside it. */
export const offeredRuntime = (runtime: ContainerRuntime): ContainerRuntime => ({
  info: options => runtime.info(options),
  platformPorts: () => runtime.platformPorts(),

  ensureNetwork: project => runtime.ensureNetwork(project),
  ensureBuildNetwork: projectId => runtime.ensureBuildNetwork(projectId),

  create: spec => runtime.create(spec),
  start: containerId => runtime.start(containerId),
  stop: (containerId, graceSeconds) => runtime.stop(containerId, graceSeconds),
  restart: (containerId, graceSeconds) => runtime.restart(containerId, graceSeconds),
  remove: (containerId, options) => runtime.remove(containerId, options),
  removeLeftFiles: owner => runtime.removeLeftFiles(owner),
  rename: (containerId, name) => runtime.rename(containerId, name),
  inspect: containerId => runtime.inspect(containerId),
  list: owner => runtime.list(owner),
  dial: (containerId, port) => runtime.dial(containerId, port),
  routeConflict: containerId => runtime.routeConflict(containerId),

  tail: (containerId, lines) => runtime.tail(containerId, lines),
  logs: (containerId, options) => runtime.logs(containerId, options),
  exec: (containerId, command, options) => runtime.exec(containerId, command, options),
  openProgram: (containerId, command, options) => runtime.openProgram(containerId, command, options),
  openTerminal: (containerId, command, options) => runtime.openTerminal(containerId, command, options),
  endTerminal: (containerId, terminalId) => runtime.endTerminal(containerId, terminalId),
  setCaps: (containerId, caps) => runtime.setCaps(containerId, caps),
  putFiles: (containerId, directory, tar, options) => runtime.putFiles(containerId, directory, tar, options),
  getFiles: (containerId, path, options) => runtime.getFiles(containerId, path, options),
  stats: containerId => runtime.stats(containerId),
  diskUse: (owner, limits) => runtime.diskUse(owner, limits),
  fileUse: (owner, options) => runtime.fileUse(owner, options),
  events: signal => runtime.events(signal),

  ensureVolume: (name, owner) => runtime.ensureVolume(name, owner),
  volumes: owner => runtime.volumes(owner),
  volumeNames: owner => runtime.volumeNames(owner),
  volumeUsers: name => runtime.volumeUsers(name),
  readVolume: (name, options) => runtime.readVolume(name, options),
  fillVolume: (name, tar, options) => runtime.fillVolume(name, tar, options),
  exchangeVolumes: (name, other, how) => runtime.exchangeVolumes(name, other, how),
  endVolumeCalls: name => runtime.endVolumeCalls(name),
  removeVolume: name => runtime.removeVolume(name),
  releaseVolume: name => runtime.releaseVolume(name),

  commandEnvironment: () => runtime.commandEnvironment(),
  capLabelled: (label, caps, options) => runtime.capLabelled(label, caps, options)
})

/** The same of what there is. */
export const offeredInventory = (inventory: EngineInventory): EngineInventory => ({
  containers: () => inventory.containers(),
  images: () => inventory.images(),
  networks: () => inventory.networks(),
  volumes: () => inventory.volumes(),
  diskUse: () => inventory.diskUse()
})

/** The same for images. */
export const offeredImages = (runtime: ImageService): ImageService => ({
  image: reference => runtime.image(reference),
  images: owner => runtime.images(owner),
  removeImage: reference => runtime.removeImage(reference),
  imageUse: limits => runtime.imageUse(limits),
  continuedImages: () => runtime.continuedImages(),
  imageLabels: owner => runtime.imageLabels(owner),
  load: (archive, options) => runtime.load(archive, options),
  save: (reference, signal) => runtime.save(reference, signal),
  build: (context, options, progress) => runtime.build(context, options, progress),

  buildSteps: owner => runtime.buildSteps(owner),
  removeBuildStep: id => runtime.removeBuildStep(id),
  buildUsage: () => runtime.buildUsage(),
  buildFileUse: options => runtime.buildFileUse(options),
  buildCacheBytes: owner => runtime.buildCacheBytes(owner),
  clearBuildCache: (owner, keep) => runtime.clearBuildCache(owner, keep)
})
