import type { Readable } from 'node:stream'
import { type Clock, isProblem, settleAll } from 'busbar/sdk'
import type Docker from 'dockerode'
import type {
  BuildOptions,
  BuildUsage,
  BuiltImage,
  ContainerRuntime,
  ImageInfo,
  KeptSteps,
  Owner
} from './api.js'
import { buildProblem, withSourceLine } from './build-failure.js'
import { BuildFootprint } from './build-footprint.js'
import { type BuildSteps, unneededSteps } from './build-steps.js'
import type { EngineClient } from './engine-client.js'
import type { Identity } from './identity.js'
import { hasName, imageInfo, isForeign, isLoadedName } from './image-info.js'
import { checkImage, parseImageReference } from './image-reference.js'
import { imageInstanceLabel, isAmong, ownerFilter } from './labels.js'
import { loadProblem } from './load-failure.js'
import { LoadFootprint } from './load-footprint.js'
import { asReadable, jsonLines, OutputLines } from './output-lines.js'
import { problems } from './problems.js'
import { PullProgress } from './pull-progress.js'
import { SharedCall } from './shared-call.js'
import { StageEnds } from './stage-ends.js'
import { StepCheck } from './step-check.js'
import { guardSteps, isStep, markedSharedBytes, type StepCaps } from './step-guard.js'
import { removeStep } from './step-removal.js'
import { removeStraySteps, type StrayStep } from './stray-steps.js'

interface Progress {
  readonly onLine: (line: string) => void
  readonly signal: AbortSignal
}

const cpuPeriodMicroseconds = 100_000

/** Processes and threads of one step of a build: as many as a container of an application may have. */
const maxStepProcesses = 4096
const forkRefused = /can't fork|fork: (?:retry|Resource)|Resource temporarily unavailable/

/** What a processor runs beside its own kind. */
const alsoRuns: Readonly<Record<string, readonly string[]>> = { amd64: ['386'], arm64: ['arm'] }

interface ImagesParts {
  readonly engine: EngineClient
  readonly instanceId: string
  readonly identity: Identity
  readonly clock: Clock
  /** The name of the network in which steps of builds of a project run. */
  readonly network: (projectId: string) => Promise<string>
}

/** Images on the engine: looked up, pulled, built and removed. */
export class Images {
  #processor: Promise<string> | undefined
  /** Of the builds and loads that run now. */
  readonly #footprints = new Set<BuildFootprint | LoadFootprint>()
  /**
   * Of everybody, because a step may be needed by an image that is nobody's: megabytes on an engine with many builds,
   * so that those who ask at the same time share it.
   */
  readonly #everything: SharedCall<EngineListing>

  constructor(private readonly parts: ImagesParts) {
    this.#everything = new SharedCall(async () => await listEverything(parts.engine), listingLimitMs)
  }

  async find(reference: string): Promise<ImageInfo | undefined> {
    const seen = await this.#inspect(reference)
    return seen === undefined ? undefined : await this.#info(seen)
  }

  /** What a container inherits; undefined where there is no such image. */
  async config(reference: string): Promise<Docker.ImageInspectInfo['Config'] | undefined> {
    return (await this.#inspect(reference))?.Config
  }

  async list(owner: Owner): Promise<readonly BuiltImage[]> {
    const label = [`${imageInstanceLabel}=${this.parts.instanceId}`, ...ownerFilter(owner)]
    const found = await this.parts.engine.call(
      'list images',
      async docker => await docker.listImages({ filters: { label } })
    )
    return found.flatMap(image => {
      const imageOwner = this.parts.identity.image(image.Labels, isForeign(image))
      if (imageOwner === undefined || !isAmong(owner, imageOwner)) return []
      const names = (image.RepoTags ?? []).filter(tag => tag !== '<none>:<none>')
      const tags = names.filter(name => !isLoadedName(name))
      return names.length > 0 && tags.length === 0 ? [] : [{ id: image.Id, tags, owner: imageOwner }]
    })
  }

  async remove(reference: string): Promise<void> {
    const seen = await this.#inspect(reference)
    if (seen === undefined) return
    // A name that the platform gave it itself is the platform's to take back, whatever the labels say: they came with it.
    const builtBy = isLoadedName(reference) ? undefined : seen.Config.Labels?.[imageInstanceLabel]
    if (builtBy !== undefined && builtBy !== '' && builtBy !== this.parts.instanceId)
      throw problems.imageForeign({ image: reference })
    await this.parts.engine.call(
      `remove the image ${reference}`,
      async docker => {
        await docker.getImage(reference).remove()
      },
      {
        absent: [404],
        explain: ({ statusCode, words }) =>
          statusCode === 409 ? problems.imageInUse({ image: reference, reason: words }) : undefined
      }
    )
  }

  async cacheBytes(owner: Owner): Promise<number> {
    return (await this.#steps(owner)).bytes
  }

  async clearCache(owner: Owner, keep?: KeptSteps): Promise<void> {
    for (const id of (await this.#steps(owner, keep)).ids)
      await removeStep(this.parts.engine, id, { noprune: true })
  }

  /** See `ContainerRuntime.buildUsage`. */
  async usage(): Promise<readonly BuildUsage[]> {
    return await Promise.all([...this.#footprints].map(async footprint => await footprint.measure()))
  }

  async #steps(owner: Owner, keep: KeptSteps = keepNone): Promise<BuildSteps> {
    const { images, containers } = await this.#everything.answer()
    const inContainers = new Set(containers.map(({ ImageID }) => ImageID))
    return unneededSteps(
      images.map(({ Id, ParentId, Size, Created, RepoTags, RepoDigests, Labels }) => ({
        id: Id,
        parentId: ParentId,
        sizeBytes: Size,
        createdAt: new Date(Created * 1000),
        isUsed:
          inContainers.has(Id) ||
          keep.ends.some(id => Id.startsWith(`sha256:${id}`)) ||
          hasName(RepoTags) ||
          hasName(RepoDigests),
        isOwned: isAmong(owner, this.parts.identity.image(Labels, isForeign({ RepoTags, RepoDigests })))
      })),
      keep
    )
  }

  async load(
    archive: Readable,
    { name, owner, onLayer, signal }: Parameters<ContainerRuntime['load']>[1]
  ): Promise<ImageInfo> {
    checkImage(name)
    const footprint = new LoadFootprint(owner ?? {})
    if (owner !== undefined) this.#footprints.add(footprint)
    // What is half an archive must not come to its end: the engine takes it apart only then.
    const broken = new AbortController()
    archive.once('error', error => broken.abort(error))
    archive.on('data', (chunk: Buffer) => footprint.take(chunk.length))
    archive.pause()
    const running = AbortSignal.any([signal, broken.signal])
    try {
      await this.#follow(
        `load ${name}`,
        running,
        async docker => await docker.loadImage(archive, { quiet: false, abortSignal: running }),
        words => loadProblem(words),
        event => {
          if (footprint.read(event)) onLayer?.()
        }
      )
      const seen = await this.#inspect(name)
      if (seen === undefined) throw problems.imageArchive({ reason: 'it names another image' })
      return await this.#info(seen)
    } finally {
      this.#footprints.delete(footprint)
      archive.destroy()
    }
  }

  async build(context: Readable, options: BuildOptions, { onLine, signal }: Progress): Promise<ImageInfo> {
    const processes = options.processes ?? maxStepProcesses
    let isForkNoted = false
    const lines = new OutputLines(line => {
      onLine(line)
      if (isForkNoted || !forkRefused.test(line)) return
      isForkNoted = true
      onLine(`A step of a build may have ${processes} processes and threads at once.`)
    })
    const progress = new PullProgress(onLine)
    const stages = new StageEnds()
    const caps = stepCaps(options)
    const footprint = this.#openFootprint(options.owner, caps)
    const check = options.generated === undefined ? undefined : new StepCheck(options.generated)
    let baseImage = ''
    let built: string | undefined
    // Its errors look like those of the engine's socket, and are not.
    let contextError: unknown
    context.once('error', error => {
      contextError = error
    })
    const readLine = async (text: string): Promise<void> => {
      baseImage = /^Step \d+\/\d+ : FROM (?:--platform=\S+ )?(\S+)/i.exec(text)?.[1] ?? baseImage
      stages.read(text)
      footprint.read(text)
      await lines.writeInTurns(check?.read(text) ?? text)
    }
    const ended = new AbortController()
    const refused = new AbortController()
    const strays: StrayStep[] = []
    const running = AbortSignal.any([signal, refused.signal])
    try {
      const guarded = guardSteps(this.parts.engine, {
        caps,
        processes,
        labels: this.parts.identity.ofImage(options.owner),
        onStray: step => {
          strays.push(step)
          refused.abort(problems.buildLabels({ label: step.label }))
        },
        signal: AbortSignal.any([running, ended.signal]),
        onRefusal: reason => onLine(`The number of processes of this step is not limited: ${reason}`)
      })
      const [network, begunAt] = await settleAll([this.parts.network(options.owner.projectId), guarded])
      footprint.begin(begunAt ?? this.parts.clock.now())
      await this.#follow(
        'build the image',
        running,
        async docker =>
          await docker.buildImage(context, {
            ...this.#engineOptions(options),
            ...caps,
            networkmode: network,
            abortSignal: running
          }),
        words =>
          buildProblem(withSourceLine(words, options), {
            ...options,
            dockerfile: options.generated?.name ?? options.dockerfile,
            baseImage
          }),
        async event => {
          if (typeof event.stream === 'string') await readLine(event.stream)
          else progress.write(event)
          built = imageIdIn(event.aux) ?? built
        }
      )
      if (built === undefined) throw problems.buildCut()
      check?.end()
      const seen = await this.#inspect(built)
      if (seen === undefined) throw problems.imageMissing({ image: options.tag })
      await this.#checkLabels(seen, options)
      if (check !== undefined) {
        await this.#name(seen.Id, options.tag)
        lines.write(`Successfully tagged ${options.tag}\n`)
      }
      return { ...(await this.#info(seen)), stageEnds: stages.ids }
    } catch (error) {
      lines.end()
      if (check?.sourceLine !== undefined)
        onLine(
          `The build stopped at line ${check.sourceLine} of ${options.generated?.name ?? options.dockerfile}.`
        )
      if (built !== undefined && isProblem(error) && error.code === 'E_BUILD_DIFFERS')
        await this.#discard(built)
      // Why the build was ended counts, not whether this went well: what stays is removed with the cache of whom it names.
      if (strays.length > 0)
        await removeStraySteps(
          this.parts.engine,
          strays,
          async () => (await this.#everything.answer()).images
        ).catch(() => undefined)
      running.throwIfAborted()
      throw contextError ?? error
    } finally {
      ended.abort()
      this.#footprints.delete(footprint)
      lines.end()
      context.destroy()
    }
  }

  async #name(id: string, tag: string): Promise<void> {
    const { name, version } = parseImageReference(tag)
    await this.parts.engine.call(`name the image ${tag}`, async docker => {
      await docker.getImage(id).tag({ repo: name, tag: version })
    })
  }

  /** Unless it has a name: then it is the unchanged result of an earlier build. */
  async #discard(id: string): Promise<void> {
    if ((await this.#inspect(id))?.RepoTags.length !== 0) return
    await this.parts.engine
      .call(
        'remove the image of a build that failed',
        async docker => {
          await docker.getImage(id).remove()
        },
        { absent: [404, 409] }
      )
      .catch(() => undefined)
  }

  #openFootprint(owner: Owner, caps: StepCaps): BuildFootprint {
    const { engine, identity } = this.parts
    const labels = Object.entries(identity.ofImage(owner)).map(([key, value]) => `${key}=${value}`)
    const footprint = new BuildFootprint(engine, { owner, labels, isStep: seen => isStep(seen, caps) })
    this.#footprints.add(footprint)
    return footprint
  }

  async #info(seen: Docker.ImageInspectInfo): Promise<ImageInfo> {
    const { Architecture: architecture, Os: system } = seen
    const own = await this.#ownProcessor()
    const isForeign =
      architecture !== '' && architecture !== own && alsoRuns[own]?.includes(architecture) !== true
    return { ...imageInfo(seen), ...(isForeign && { foreignPlatform: `${system}/${architecture}` }) }
  }

  /** As images name it; an engine that is asked once does not move to another machine. */
  async #ownProcessor(): Promise<string> {
    this.#processor ??= this.parts.engine.call(
      'describe itself',
      async docker => (await docker.version()).Arch
    )
    try {
      return await this.#processor
    } catch (error) {
      this.#processor = undefined
      throw error
    }
  }

  // A Dockerfile that sets them once more would hand its image to somebody else.
  async #checkLabels(seen: Docker.ImageInspectInfo, { owner, tag, generated }: BuildOptions): Promise<void> {
    const labels = seen.Config.Labels ?? {}
    const wrong = Object.entries(this.parts.identity.ofImage(owner)).find(
      ([key, value]) => labels[key] !== value
    )
    if (wrong === undefined) return
    await this.parts.engine.call(
      'remove an image with foreign labels',
      async docker => {
        await docker.getImage(generated === undefined ? tag : seen.Id).remove({ force: true })
      },
      { absent: [404, 409] }
    )
    throw problems.buildLabels({ label: wrong[0] })
  }

  #engineOptions(options: BuildOptions): Docker.ImageBuildOptions {
    return {
      version: '1',
      ...(options.generated === undefined && { t: options.tag }),
      dockerfile: options.dockerfile,
      buildargs: { ...options.buildArgs },
      ...(options.isLabelled === true ? {} : { labels: this.parts.identity.ofImage(options.owner) }),
      nocache: options.noCache ?? false,
      rm: true,
      forcerm: true
    }
  }

  /** Reads a stream of events to its end. Failures arrive as events of a stream that began well, or as a refusal. */
  async #follow(
    task: string,
    signal: AbortSignal,
    open: (docker: Docker) => Promise<NodeJS.ReadableStream>,
    explain: (words: string) => ReturnType<typeof buildProblem>,
    onEvent: (event: Readonly<Record<string, unknown>>) => void | Promise<void>
  ): Promise<void> {
    signal.throwIfAborted()
    try {
      await this.parts.engine.call(
        task,
        async docker => {
          for await (const event of jsonLines(asReadable(await open(docker)))) {
            if (typeof event.error === 'string') throw explain(event.error)
            await onEvent(event)
          }
        },
        {
          patient: true,
          explain: ({ statusCode, words }) => (statusCode === undefined ? undefined : explain(words))
        }
      )
    } catch (error) {
      // Whatever broke when the caller gave up, that it gave up is why.
      signal.throwIfAborted()
      throw error
    }
    signal.throwIfAborted()
  }

  async #inspect(reference: string): Promise<Docker.ImageInspectInfo | undefined> {
    checkImage(reference)
    return await this.parts.engine.call(
      `inspect the image ${reference}`,
      async docker => await docker.getImage(reference).inspect(),
      { absent: [404] }
    )
  }
}

interface EngineListing {
  readonly images: readonly Docker.ImageInfo[]
  readonly containers: readonly Docker.ContainerInfo[]
}

/** On a machine with many thousands of images it takes long; an engine that has gone never answers. */
const listingLimitMs = 300_000

const listEverything = async (engine: EngineClient): Promise<EngineListing> =>
  await engine.call(
    'list images',
    async docker => {
      const [images, containers] = await Promise.all([
        docker.listImages({ all: true }),
        docker.listContainers({ all: true })
      ])
      return { images, containers }
    },
    { patient: true }
  )

const keepNone: KeptSteps = { ends: [], newest: 0, after: new Date(0) }

const stepCaps = ({ memoryBytes, cpus }: BuildOptions): StepCaps => ({
  memory: memoryBytes,
  memswap: memoryBytes,
  cpuperiod: cpuPeriodMicroseconds,
  cpuquota: Math.round(cpus * cpuPeriodMicroseconds),
  shmsize: markedSharedBytes()
})

function imageIdIn(aux: unknown): string | undefined {
  return typeof aux === 'object' && aux !== null && 'ID' in aux && typeof aux.ID === 'string'
    ? aux.ID
    : undefined
}
