import { mkdir } from 'node:fs/promises'
import { join } from 'node:path'
import type { ContainerRuntime } from 'busbar/api/containers'
import { type Clock, type Contributions, settleAll, withTimeLimit } from 'busbar/sdk'
import type {
  BuildContext,
  Builder,
  ImagePreparation,
  ImageRequest,
  PreparationContext,
  PreparedImage
} from './api.js'
import { binfmtEntries, checkRuns } from './builders/runnable-image.js'
import type { CacheClearings } from './cache/cache-clearings.js'
import type { LatestBuilds } from './cache/latest-builds.js'
import { openRoot } from './context/source-tree.js'
import type { Workspaces } from './context/workspace.js'
import type { GitContext, GitSource } from './git/git-source.js'
import { credentialsFor, parseRepository } from './git/repository-address.js'
import { problems } from './problems.js'
import { type ImageNames, imageTag } from './registry/image-names.js'
import type { ResolverParts } from './registry/image-resolver.js'
import { type ImageSource, pullImage } from './registry/pinned-image.js'
import type { DeploymentAccounts } from './registry/pull-accounts.js'
import type { DeployKey, DeployKeys } from './ssh/deploy-keys.js'
import { secretLines } from './ssh/openssh-key.js'

interface PreparationDependencies extends ResolverParts {
  readonly accounts: DeploymentAccounts
  readonly builders: Contributions<Builder>
  readonly runtime: Pick<ContainerRuntime, 'info'>
  /** Those that the kernel of this machine knows, unless given. */
  readonly emulators?: () => Promise<readonly string[]>
  readonly git: GitSource
  readonly workspaces: Workspaces
  readonly clock: Clock
  readonly clearings: CacheClearings
  readonly latest: LatestBuilds
  readonly names: ImageNames
  readonly deployKeys: Pick<DeployKeys, 'find' | 'knownHosts'>
  readonly buildMinutes: number
  readonly pullMinutes: number
}

/** Beside what is asked for: the disk watch gets the size of the checkout. */
type WatchedContext = PreparationContext & Pick<GitContext, 'onCheckoutSize'>
type GitRequest = ImageRequest & { readonly source: Extract<ImageRequest['source'], { type: 'git' }> }

/** See `ImagePreparation`. */
export class SourceToImage implements ImagePreparation {
  constructor(private readonly dependencies: PreparationDependencies) {}

  async prepare(request: ImageRequest, context: WatchedContext): Promise<PreparedImage> {
    const { secrets, signal } = context
    secrets.redact(secretsOf(request))
    signal.throwIfAborted()
    return await this.dependencies.accounts.hiding(
      request.deploymentId,
      secrets,
      async () => await this.#prepare(request, context)
    )
  }

  async #prepare(request: ImageRequest, context: WatchedContext): Promise<PreparedImage> {
    const { source, projectId, applicationId, deploymentId } = request
    const { secrets, signal } = context
    if (source.type === 'image') {
      const { image, registry: auth } = source
      return await this.#pull({ image, projectId, applicationId, deploymentId, auth }, context)
    }
    return await this.#build(
      { ...request, source },
      {
        secrets,
        signal,
        log: line => context.log(line),
        clean: text => secrets.clean(text),
        onCheckoutSize: bytes => context.onCheckoutSize?.(bytes),
        onStep: step => context.onStep?.(step),
        onEngine: engine => context.onEngine?.(engine),
        onCommit: commit => context.onCommit(commit)
      }
    )
  }

  async #pull(source: ImageSource, context: BuildContext): Promise<PreparedImage> {
    const { clock, pullMinutes } = this.dependencies
    const reason = () => problems.pullTimeout({ image: source.image, minutes: pullMinutes })
    return await withTimeLimit(
      { clock, signal: context.signal, ms: pullMinutes * 60_000, reason },
      async signal => await pullImage(this.dependencies, source, { ...context, signal })
    )
  }

  async #build(
    request: GitRequest,
    context: Pick<PreparationContext, 'onCommit' | 'secrets'> & GitContext
  ): Promise<PreparedImage> {
    const { git, workspaces, clock, clearings, latest, names, deployKeys, buildMinutes } = this.dependencies
    const { applicationId, ...wanted } = request
    const { runtime, imageService, emulators = binfmtEntries } = this.dependencies
    const builder = this.#builderFor(request.buildType)
    return await workspaces.with(request.deploymentId, async folder => {
      const tree = join(folder, 'source')
      const [home, scratch] = [join(folder, 'home'), join(folder, 'scratch')]
      const [deployKey] = await settleAll([
        this.#deployKey(applicationId, context),
        ...[home, scratch].map(async made => await mkdir(made))
      ])
      const { repo, branch, token, rootDirectory, dockerfilePath, target, platform } = request.source
      const [commit, nameToken] = await settleAll([
        git.clone(
          {
            repo,
            branch,
            token,
            deployKey,
            knownHosts: deployKeys.knownHosts(applicationId),
            commit: request.commit,
            directory: tree,
            home
          },
          context
        ),
        names.tokenOf(request.applicationId)
      ])
      context.onCommit(commit)
      const [directory, cleared] = await settleAll([
        openRoot(tree, rootDirectory),
        clearings.find(request.applicationId)
      ])
      const tag = imageTag({ ...request, token: nameToken })
      const reason = () => problems.buildTimeout({ minutes: buildMinutes })
      const noCache = cleared !== undefined
      const image = await withTimeLimit(
        { clock, signal: context.signal, ms: buildMinutes * 60_000, reason },
        async signal =>
          await builder.build(
            {
              ...wanted,
              applicationId,
              directory,
              dockerfilePath,
              tag,
              scratch,
              noCache,
              ...(target !== undefined && { target }),
              ...(platform !== undefined && { platform }),
              ...(deployKey !== undefined && { sshKey: deployKey.privateKey })
            },
            {
              signal,
              log: line => context.log(line),
              onStep: step => context.onStep?.(step),
              onEngine: engine => context.onEngine?.(engine)
            }
          )
      )
      try {
        await checkRuns(
          { runtime, emulators },
          { image, ...(platform !== undefined && { platform }) },
          context
        )
      } catch (error) {
        await imageService.removeImage(tag).catch(() => undefined)
        throw error
      }
      if (cleared !== undefined) await clearings.settle(request.applicationId, cleared)
      await latest.save(request.applicationId, { builtAt: clock.now(), stageEnds: image.stageEnds ?? [] })
      return { reference: tag, name: tag, image }
    })
  }

  async #deployKey(
    applicationId: string,
    { secrets }: Pick<PreparationContext, 'secrets'>
  ): Promise<DeployKey | undefined> {
    const found = await this.dependencies.deployKeys.find(applicationId)
    if (found !== undefined) secrets.redact(secretLines(found.privateKey))
    return found
  }

  #builderFor(buildType: string): Builder {
    const { builders } = this.dependencies
    const builder = builders.get(buildType)
    if (builder === undefined)
      throw problems.buildTypeMissing({
        type: buildType,
        available: builders.keys().sort().join(', ') || 'none'
      })
    return builder
  }
}

/** What must not show in the log of the build, in each form in which it travels. */
function secretsOf({ source, variables }: ImageRequest): string[] {
  const secret = variables.filter(({ isSecret }) => isSecret).map(({ value }) => value)
  if (source.type === 'image')
    return source.registry === undefined ? secret : [...secret, source.registry.password]
  const written = /^https?:\/\/[^/@:]*:([^/@]+)@/i.exec(source.repo)?.[1]
  return [
    ...secret,
    ...[source.token, written, credentialsOf(source)].filter(value => value !== undefined && value !== null)
  ]
}

function credentialsOf(source: GitRequest['source']): string | null {
  try {
    return credentialsFor(parseRepository(source.repo), source.token)
  } catch {
    return null
  }
}
