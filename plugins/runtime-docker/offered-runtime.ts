import type { ContainerRuntime } from './api.js'

/** What other plugins may do with containers, and nothing that the runtime can do beside it. */
export const offeredRuntime = (runtime: ContainerRuntime): ContainerRuntime => ({
  info: () => runtime.info(),

  ensureNetwork: project => runtime.ensureNetwork(project),
  removeNetworks: projectId => runtime.removeNetworks(projectId),
  ensureBuildNetwork: projectId => runtime.ensureBuildNetwork(projectId),

  create: spec => runtime.create(spec),
  start: containerId => runtime.start(containerId),
  stop: (containerId, graceSeconds) => runtime.stop(containerId, graceSeconds),
  remove: containerId => runtime.remove(containerId),
  rename: (containerId, name) => runtime.rename(containerId, name),
  inspect: containerId => runtime.inspect(containerId),
  list: owner => runtime.list(owner),
  dial: (containerId, port) => runtime.dial(containerId, port),
  detour: containerId => runtime.detour(containerId),
  tail: (containerId, lines) => runtime.tail(containerId, lines),

  image: reference => runtime.image(reference),
  images: owner => runtime.images(owner),
  removeImage: reference => runtime.removeImage(reference),
  continuedImages: () => runtime.continuedImages(),
  imageLabels: owner => runtime.imageLabels(owner),
  load: (archive, options) => runtime.load(archive, options),
  build: (context, options, progress) => runtime.build(context, options, progress),

  buildSteps: owner => runtime.buildSteps(owner),
  buildUsage: () => runtime.buildUsage(),
  buildCacheBytes: owner => runtime.buildCacheBytes(owner),
  clearBuildCache: (owner, keep) => runtime.clearBuildCache(owner, keep),
  commandEnvironment: () => runtime.commandEnvironment(),

  capLabelled: (label, caps, options) => runtime.capLabelled(label, caps, options),

  ensureVolume: (name, owner) => runtime.ensureVolume(name, owner),
  volumes: owner => runtime.volumes(owner),
  removeVolume: name => runtime.removeVolume(name),
  releaseVolume: name => runtime.releaseVolume(name),

  events: signal => runtime.events(signal)
})
