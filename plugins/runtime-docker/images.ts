import type Docker from 'dockerode'
import type { Readable } from 'node:stream'
import type { BuildOptions, ImageInfo, KeptSteps, Owner, RegistryAuth } from './api.js'
import { buildProblem } from './build-failure.js'
import { unneededSteps, type BuildSteps } from './build-steps.js'
import type { EngineClient } from './engine-client.js'
import { checkImage, parseImageReference } from './image-reference.js'
import { imageInstanceLabel, imageLabels, ownerFilter, ownerOf } from './labels.js'
import { asReadable, jsonLines, OutputLines } from './output-lines.js'
import { problems } from './problems.js'
import { pullProblem } from './pull-failure.js'
import { PullProgress } from './pull-progress.js'
import { StageEnds } from './stage-ends.js'
import { guardSteps, type StepCaps } from './step-guard.js'

interface Progress { readonly onLine: (line: string) => void, readonly signal: AbortSignal }

const cpuPeriodMicroseconds = 100_000

/** Processes and threads of one step of a build: as many as a container of an application may have. */
const maxStepProcesses = 4096
const forkRefused = /can't fork|fork: (?:retry|Resource)|Resource temporarily unavailable/

/** What a processor runs beside its own kind. */
const alsoRuns: Readonly<Record<string, readonly string[]>> = { amd64: ['386'], arm64: ['arm'] }

/** Images on the engine: looked up, pulled, built and removed. */
export class Images {
  #processor: Promise<string> | undefined

  constructor (private readonly engine: EngineClient, private readonly instanceId: string) {}

  async find (reference: string): Promise<ImageInfo | undefined> {
    const seen = await this.#inspect(reference)
    return seen === undefined ? undefined : await this.#info(seen)
  }

  async list (owner: Owner): Promise<ReadonlyArray<{ readonly id: string, readonly tags: readonly string[] }>> {
    const label = [`${imageInstanceLabel}=${this.instanceId}`, ...ownerFilter(owner)]
    const found = await this.engine.call('list images', async docker => await docker.listImages({ filters: { label } }))
    return found.map(({ Id, RepoTags }) => ({ id: Id, tags: (RepoTags ?? []).filter(tag => tag !== '<none>:<none>') }))
  }

  async remove (reference: string): Promise<void> {
    const seen = await this.#inspect(reference)
    if (seen === undefined) return
    const builtBy = seen.Config.Labels?.[imageInstanceLabel]
    if (builtBy !== undefined && builtBy !== this.instanceId) throw problems.imageForeign({ image: reference })
    await this.engine.call(`remove the image ${reference}`, async docker => { await docker.getImage(reference).remove() }, {
      absent: [404],
      explain: ({ statusCode, words }) => statusCode === 409 ? problems.imageInUse({ image: reference, reason: words }) : undefined
    })
  }

  async cacheBytes (owner: Owner): Promise<number> {
    return (await this.#steps(owner)).bytes
  }

  async clearCache (owner: Owner, keep?: KeptSteps): Promise<void> {
    for (const id of (await this.#steps(owner, keep)).ids) {
      // 409: something has come to need it since.
      await this.engine.call('remove a step of a build', async docker => { await docker.getImage(id).remove({ noprune: true }) }, { absent: [404, 409] })
    }
  }

  async #steps (owner: Owner, keep: KeptSteps = keepNone): Promise<BuildSteps> {
    const [images, containers] = await this.engine.call('list images', async docker =>
      await Promise.all([docker.listImages({ all: true }), docker.listContainers({ all: true })]), { patient: true })
    const inContainers = new Set(containers.map(({ ImageID }) => ImageID))
    const wanted = Object.entries(imageLabels(owner, this.instanceId))
    return unneededSteps(images.map(({ Id, ParentId, Size, Created, RepoTags, RepoDigests, Labels }) => ({
      id: Id,
      parentId: ParentId,
      sizeBytes: Size,
      createdAt: new Date(Created * 1000),
      isUsed: inContainers.has(Id) || keep.ends.some(id => Id.startsWith(`sha256:${id}`)) || hasName(RepoTags) || hasName(RepoDigests),
      isOwned: wanted.every(([key, value]) => (Labels as Record<string, string> | null)?.[key] === value)
    })), keep)
  }

  async pull (image: string, { auth, isBase, onLine, signal }: Progress & { readonly auth?: RegistryAuth, readonly isBase?: true }): Promise<ImageInfo> {
    const reference = parseImageReference(image)
    const progress = new PullProgress(onLine)
    const account = auth === undefined ? {} : { authconfig: { serveraddress: reference.registry, ...auth } }
    const as = auth !== undefined ? { username: auth.username } : isBase === true ? 'build' : 'nobody'
    const explain = (words: string) => pullProblem({ reference, image, as }, words)
    // By digest the engine takes what it holds without asking the registry who may have it.
    if (reference.version.startsWith('sha256:') && await this.#inspect(image) !== undefined) {
      await orAborted(signal, this.engine.call(`ask for ${image}`, async docker => await docker.getImage(image).distribution(account), {
        patient: true, explain: ({ statusCode, words }) => statusCode === undefined ? undefined : explain(words)
      }))
    }
    await this.#follow(`pull ${image}`, signal, async docker => await docker.createImage({
      fromImage: reference.name,
      tag: reference.version,
      abortSignal: signal,
      ...account
    }), explain, event => progress.write(event))
    const seen = await this.#inspect(image)
    if (seen === undefined) throw problems.imageMissing({ image })
    return await this.#info(seen)
  }

  async build (context: Readable, options: BuildOptions, { onLine, signal }: Progress): Promise<ImageInfo> {
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
    let baseImage = ''
    let built: string | undefined
    // Its errors look like those of the engine's socket, and are not.
    let contextError: unknown
    context.once('error', error => { contextError = error })
    const readLine = (text: string): void => {
      baseImage = /^Step \d+\/\d+ : FROM (?:--platform=\S+ )?(\S+)/i.exec(text)?.[1] ?? baseImage
      stages.read(text)
      lines.write(text)
    }
    const ended = new AbortController()
    try {
      await guardSteps(this.engine, {
        caps: stepCaps(options),
        processes,
        signal: AbortSignal.any([signal, ended.signal]),
        onRefusal: reason => onLine(`The number of processes of this step is not limited: ${reason}`)
      })
      await this.#follow('build the image', signal, async docker => await docker.buildImage(context, { ...this.#engineOptions(options), abortSignal: signal }),
        words => buildProblem(words, { ...options, baseImage }),
        event => {
          if (typeof event['stream'] === 'string') readLine(event['stream'])
          else progress.write(event)
          built = imageIdIn(event['aux']) ?? built
        })
    } catch (error) {
      signal.throwIfAborted()
      throw contextError ?? error
    } finally {
      ended.abort()
      lines.end()
      context.destroy()
    }
    if (built === undefined) throw problems.buildCut()
    const seen = await this.#inspect(built)
    if (seen === undefined) throw problems.imageMissing({ image: options.tag })
    await this.#checkLabels(seen, options)
    return { ...await this.#info(seen), stageEnds: stages.ids }
  }

  async #info (seen: Docker.ImageInspectInfo): Promise<ImageInfo> {
    const { Architecture: architecture, Os: system } = seen
    const own = await this.#ownProcessor()
    const isForeign = architecture !== '' && architecture !== own && alsoRuns[own]?.includes(architecture) !== true
    return { ...imageInfo(seen), ...(isForeign && { foreignPlatform: `${system}/${architecture}` }) }
  }

  /** As images name it; an engine that is asked once does not move to another machine. */
  async #ownProcessor (): Promise<string> {
    this.#processor ??= this.engine.call('describe itself', async docker => (await docker.version()).Arch)
    try {
      return await this.#processor
    } catch (error) {
      this.#processor = undefined
      throw error
    }
  }

  // A Dockerfile that sets them once more would hand its image to somebody else.
  async #checkLabels (seen: Docker.ImageInspectInfo, { owner, tag }: BuildOptions): Promise<void> {
    const labels = seen.Config.Labels ?? {}
    const wrong = Object.entries(imageLabels(owner, this.instanceId)).find(([key, value]) => labels[key] !== value)
    if (wrong === undefined) return
    await this.engine.call('remove an image with foreign labels', async docker => { await docker.getImage(tag).remove({ force: true }) }, { absent: [404, 409] })
    throw problems.buildLabels({ label: wrong[0] })
  }

  #engineOptions (options: BuildOptions): Docker.ImageBuildOptions {
    return {
      version: '1',
      t: options.tag,
      dockerfile: options.dockerfile,
      buildargs: { ...options.buildArgs },
      ...(options.isLabelled === true ? {} : { labels: imageLabels(options.owner, this.instanceId) }),
      ...stepCaps(options),
      nocache: options.noCache ?? false,
      rm: true,
      forcerm: true
    }
  }

  /** Reads a stream of events to its end. Failures arrive as events of a stream that began well, or as a refusal. */
  async #follow (
    task: string,
    signal: AbortSignal,
    open: (docker: Docker) => Promise<NodeJS.ReadableStream>,
    explain: (words: string) => ReturnType<typeof buildProblem>,
    onEvent: (event: Readonly<Record<string, unknown>>) => void
  ): Promise<void> {
    signal.throwIfAborted()
    try {
      await this.engine.call(task, async docker => {
        for await (const event of jsonLines(asReadable(await open(docker)))) {
          if (typeof event['error'] === 'string') throw explain(event['error'])
          onEvent(event)
        }
      }, { patient: true, explain: ({ statusCode, words }) => statusCode === undefined ? undefined : explain(words) })
    } catch (error) {
      // Whatever broke when the caller gave up, that it gave up is why.
      signal.throwIfAborted()
      throw error
    }
    signal.throwIfAborted()
  }

  async #inspect (reference: string): Promise<Docker.ImageInspectInfo | undefined> {
    checkImage(reference)
    return await this.engine.call(`inspect the image ${reference}`, async docker => await docker.getImage(reference).inspect(), { absent: [404] })
  }
}

const keepNone: KeptSteps = { ends: [], newest: 0, after: new Date(0) }

/** The engine writes `<none>:<none>` and `<none>@<none>` for what has none. */
const hasName = (names: readonly string[] | null | undefined): boolean => names?.some(name => !name.startsWith('<none>')) ?? false

const stepCaps = ({ memoryBytes, cpus }: BuildOptions): StepCaps =>
  ({ memory: memoryBytes, memswap: memoryBytes, cpuperiod: cpuPeriodMicroseconds, cpuquota: Math.round(cpus * cpuPeriodMicroseconds) })

/** For a call that cannot be taken back: nobody waits for it any longer. */
async function orAborted<T> (signal: AbortSignal, work: Promise<T>): Promise<T> {
  signal.throwIfAborted()
  const aborted = new Promise<never>((_, reject) => { signal.addEventListener('abort', () => reject(signal.reason as Error), { once: true }) })
  return await Promise.race([work, aborted])
}

const imageInfo = (seen: Docker.ImageInspectInfo): ImageInfo => ({
  id: seen.Id,
  repoDigests: seen.RepoDigests ?? [],
  exposedPorts: tcpPorts(Object.keys(seen.Config.ExposedPorts ?? {})),
  sizeBytes: seen.Size,
  entrypoint: [seen.Config.Entrypoint ?? []].flat(),
  ...(Array.isArray(seen.Config.OnBuild) && { onBuild: seen.Config.OnBuild as readonly string[] }),
  ...(seen.Config.Labels?.[imageInstanceLabel] === undefined ? {} : { builtFor: ownerOf(seen.Config.Labels) })
})

/** EXPOSE writes `8080/tcp`, `53/udp`, or a port alone. */
export const tcpPorts = (exposed: readonly string[]): number[] =>
  exposed.flatMap(entry => /^(\d+)(?:\/tcp)?$/.exec(entry)?.[1] ?? []).map(Number).sort((a, b) => a - b)

function imageIdIn (aux: unknown): string | undefined {
  return typeof aux === 'object' && aux !== null && 'ID' in aux && typeof aux.ID === 'string' ? aux.ID : undefined
}
