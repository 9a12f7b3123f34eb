import { isProblem } from 'busbar/sdk'
import type { ImagePreparation, ImageRequest, PreparationContext, PreparedImage } from '../api.js'
import type { StepCachePruner } from '../cache/cache-pruner.js'
import type { Workspaces } from '../context/workspace.js'
import type { DiskWatch } from '../disk/disk-watch.js'
import type { SourceToImage } from '../image-preparation.js'
import type { ImageClaims } from '../registry/image-claims.js'
import type { Admission } from './admission.js'

interface AdmittedParts {
  readonly preparation: Pick<SourceToImage, 'prepare'>
  readonly admission: Pick<Admission, 'requireDisk' | 'usualLimits'>
  readonly diskWatch: Pick<DiskWatch, 'during'>
  readonly cachePruner: Pick<StepCachePruner, 'afterFailure'>
  readonly claims: Pick<ImageClaims, 'during' | 'othersAreUnderWay'>
  readonly workspaces: Pick<Workspaces, 'isRemoving'>
}

/** A disk ran out, or was about to: nothing that the build has made is worth its place. */
const diskCodes: readonly string[] = ['E_BUILD_DISK_SHORT', 'E_BUILD_DISK_LIMIT', 'E_ENGINE_DISK_FULL']

/** Preparation that begins only where there is room on the disks, never without limits, and leaves nothing large when it fails. */
export class AdmittedPreparation implements ImagePreparation {
  constructor(private readonly parts: AdmittedParts) {}

  async prepare(request: ImageRequest, context: PreparationContext): Promise<PreparedImage> {
    const { admission, claims, workspaces } = this.parts
    await admission.requireDisk(
      context.signal,
      async () => workspaces.isRemoving || (await claims.othersAreUnderWay(request.deploymentId))
    )
    const limits = request.limits ?? (await admission.usualLimits())
    // What containers are made of is needed until the deployment has noted it; what was built upon a base keeps that itself.
    const isNotedLater = request.source.type === 'image'
    return await claims.during(
      { ...request, isNotedLater },
      async ownerId => await this.#watched({ ...request, limits }, ownerId, context)
    )
  }

  async #watched(
    request: ImageRequest,
    ownerId: string,
    context: PreparationContext
  ): Promise<PreparedImage> {
    const { preparation, diskWatch, cachePruner } = this.parts
    const isBuild = request.source.type === 'git'
    return await diskWatch.during(
      { id: request.deploymentId, ownerId, kind: isBuild ? 'build' : 'pull' },
      context.signal,
      async (signal, onCheckoutSize) => {
        try {
          return await preparation.prepare(request, { ...context, signal, onCheckoutSize })
        } catch (error) {
          if (isBuild) {
            await cachePruner.afterFailure(request.applicationId, {
              keepsAttempts: !isProblem(error) || !diskCodes.includes(error.code)
            })
          }
          throw error
        }
      }
    )
  }
}
