import type { Readable } from 'node:stream'
import type { MeasuringLimits, Owner } from 'busbar/api/containers'
import { service } from 'busbar/sdk'
import type { BuildFileUse, BuildOptions, BuildStep, BuildUsage, KeptSteps, StepProgress } from './build.js'
import type { BuiltImage, ImageInfo, ImageUse, LoadOptions } from './image.js'

export type * from './build.js'
export type * from './image.js'
export { isReservedLabel } from './labels.js'
export { imageReferenceShape, loadedPrefix, registryAwayCodes, registryOf } from './reference.js'

/**
 * The images of an engine, and what builds leave on it. Every method rejects with a `Problem` that says what to do:
 *
 * - the engine is away: 503 E_ENGINE_UNREACHABLE; its disk is full: 507 E_ENGINE_DISK_FULL
 * - it refuses, in its words: 502 E_ENGINE_REFUSED
 * - what is given is no name of an image: 400 E_IMAGE_REFERENCE
 */
export interface ImageService {
  /** By name or id; undefined when it is not on the engine. */
  image(reference: string): Promise<ImageInfo | undefined>
  /**
   * Built for it by this platform, those without a name too unless another image continues them. Names that `load` gave are
   * left out, and so is what has no other name.
   */
  images(owner: Owner): Promise<readonly BuiltImage[]>
  /**
   * Unless it is gone. Removes a tag; the image with its last one. 409 E_IMAGE_IN_USE, E_IMAGE_FOREIGN.
   */
  removeImage(reference: string): Promise<void>
  /**
   * Of each that has a name or a container, of whomever, by one look at all of them. What an image that came by `load` is made of
   * is asked for once in its life.
   */
  imageUse(limits: Pick<MeasuringLimits, 'allMs'>): Promise<readonly ImageUse[]>
  /** The ids of images upon which others are built, steps too: without its name such a one still takes its room. */
  continuedImages(): Promise<ReadonlySet<string>>
  /**
   * The labels of every image built for `owner`: its project and application, a signature, and every other reserved
   * key with nothing in it. The deployment is in the tag. A build that gives a step others is ended: 422 E_BUILD_LABELS.
   */
  imageLabels(owner: Owner): Promise<Readonly<Record<string, string>>>
  /**
   * Takes in an image as `docker save` writes it: a tar with `manifest.json`, one configuration and the layers, packed or
   * not, which it names `name`, and nothing else. A layer that the engine holds upon the same ones may be left out; where
   * one is missing that it does not hold, 409 E_IMAGE_INCOMPLETE. What is not as the configuration says is refused:
   * 422 E_IMAGE_ARCHIVE; with `builtFor`, one whose labels are not that owner's: 422 E_BUILD_LABELS.
   */
  load(archive: Readable, options: LoadOptions): Promise<ImageInfo>
  /**
   * What `load` takes in, with all of its layers: a tar as `docker save` writes it. It ends with an error where the engine
   * stops in the middle. 404 E_IMAGE_MISSING.
   */
  save(reference: string, signal: AbortSignal): Promise<Readable>
  /**
   * Builds a Dockerfile, with the given limits on memory, CPU and processes of each step. `context` is an uncompressed tar.
   * What is wrong with the source is 422 E_BUILD_…; base images that do not come, E_IMAGE_… or E_REGISTRY_….
   */
  build(
    context: Readable,
    options: BuildOptions,
    progress: {
      readonly onLine: (line: string) => void
      /** Called when a step of a generated Dockerfile begins and when it ends. */
      readonly onStep?: (step: StepProgress) => void
      readonly signal: AbortSignal
    }
  ): Promise<ImageInfo>

  /** Of builds for `owner`. Only a build that is under way needs them. */
  buildSteps(owner: Owner): Promise<readonly BuildStep[]>
  /**
   * Removes the container of a step, unless it is gone; and waits for one that the engine is about to keep: its image is
   * there then, to be removed as well. 409 E_CONTAINER_FOREIGN for what is no step of a build of this platform.
   */
  removeBuildStep(id: string): Promise<void>
  /** Of each `build` that runs by this process, measured now, and of each `load` with an owner. */
  buildUsage(): Promise<readonly BuildUsage[]>
  /**
   * Of each `build` that runs by this process, what `buildUsage` leaves out, too. It takes long: for when it matters. `most`: in
   * each place of one, counting ends there. Rejects where the engine's machine has no programs that count.
   */
  buildFileUse(options: MeasuringLimits & { readonly most: number }): Promise<readonly BuildFileUse[]>
  /** What builds for `owner` have left on the engine that no image and no container needs: steps without a name. */
  buildCacheBytes(owner: Owner): Promise<number>
  /** Removes it, but for `keep`, and for what a build that runs by this process has made or goes on from. */
  clearBuildCache(owner: Owner, keep?: KeptSteps): Promise<void>
}

export const imageService = service<ImageService>('images.service')
