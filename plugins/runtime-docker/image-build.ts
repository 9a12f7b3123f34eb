import type { Readable } from 'node:stream'
import type { Owner } from 'busbar/api/containers'
import type { BuildOptions, BuildStep, ImageInfo, StepProgress } from 'busbar/api/images'
import { type Clock, isProblem, settleAll } from 'busbar/sdk'
import type Docker from 'dockerode'
import type { BuildCache } from './build-cache.js'
import { buildProblem, withSourceLine } from './build-failure.js'
import { BuildFootprint } from './build-footprint.js'
import type { EngineClient } from './engine-client.js'
import { followProgress } from './engine-progress.js'
import type { Footprint } from './footprint.js'
import type { Identity } from './identity.js'
import type { Images } from './images.js'
import { type MislabelledStep, removeMislabelledSteps } from './mislabelled-steps.js'
import { OutputLines } from './output-lines.js'
import { problems } from './problems.js'
import { PullProgress } from './pull-progress.js'
import { StageEnds } from './stage-ends.js'
import { StepCheck } from './step-check.js'
import { guardSteps, isStep, markedSharedBytes, type StepCaps } from './step-guard.js'

interface ImageBuildParts {
  readonly engine: EngineClient
  readonly identity: Identity
  readonly clock: Clock
  /** The name of the network in which steps of builds of a project run. */
  readonly network: (projectId: string) => Promise<string>
  /** The control group of a project. */
  readonly parentGroup: (projectId: string) => Promise<string | undefined>
  readonly images: Images
  readonly cache: BuildCache
  readonly footprints: Set<Footprint>
  /** Containers of steps of builds for an owner. */
  readonly steps: (owner: Owner) => Promise<readonly BuildStep[]>
}

interface Progress {
  readonly onLine: (line: string) => void
  readonly onStep?: (step: StepProgress) => void
  readonly signal: AbortSignal
}

const cpuPeriodMicroseconds = 100_000

/** Processes and threads of one step of a build: as many as a container of an application may have. */
const maxStepProcesses = 4096
const forkRefused = /can't fork|fork: (?:retry|Resource)|Resource temporarily unavailable/

/** See `ContainerRuntime.build`. */
export async function buildImage(
  parts: ImageBuildParts,
  context: Readable,
  options: BuildOptions,
  { onLine, onStep, signal }: Progress
): Promise<ImageInfo> {
  const { engine, identity, clock, images, cache, footprints } = parts
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
  const use = cache.use(options.owner)
  const footprint = openFootprint(parts, options.owner, caps)
  const check = options.generated === undefined ? undefined : new StepCheck(options.generated, onStep)
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
    use.steps.read(text)
    await lines.writeInTurns(check?.read(text) ?? text)
  }
  const ended = new AbortController()
  const refused = new AbortController()
  const mislabelled: MislabelledStep[] = []
  const running = AbortSignal.any([signal, refused.signal])
  try {
    const guarded = guardSteps(engine, {
      caps,
      processes,
      labels: identity.ofImage(options.owner),
      onMislabelled: step => {
        mislabelled.push(step)
        refused.abort(problems.buildLabels({ label: step.label }))
      },
      signal: AbortSignal.any([running, ended.signal]),
      onRefusal: reason => onLine(`The number of processes of this step is not limited: ${reason}`)
    })
    const { projectId } = options.owner
    const [network, parentGroup, begunAt] = await settleAll([
      parts.network(projectId),
      parts.parentGroup(projectId),
      guarded
    ])
    footprint.begin(begunAt ?? clock.now())
    use.steps.begin(begunAt ?? clock.now())
    await followProgress(
      engine,
      'build the image',
      running,
      async docker => {
        // From here on docker-modem ends the request when the context fails.
        if (contextError !== undefined) throw contextError
        return await docker.buildImage(context, {
          ...engineOptions(identity, options),
          ...caps,
          networkmode: network,
          ...(parentGroup !== undefined && { cgroupparent: parentGroup }),
          abortSignal: running
        })
      },
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
    const seen = await images.inspect(built)
    if (seen === undefined) throw problems.imageMissing({ image: options.tag })
    await checkLabels(parts, seen, options)
    if (check !== undefined) {
      await images.name(seen.Id, options.tag)
      lines.write(`Successfully tagged ${options.tag}\n`)
    }
    return { ...(await images.info(seen)), stageEnds: stages.ids }
  } catch (error) {
    lines.end()
    check?.fail(signal.aborted ? 'cancelled' : 'failed')
    if (check?.sourceLine !== undefined)
      onLine(
        `The build stopped at line ${check.sourceLine} of ${options.generated?.name ?? options.dockerfile}.`
      )
    if (built !== undefined && isProblem(error) && error.code === 'E_BUILD_DIFFERS')
      await images.discard(built)
    // Why the build was ended counts, not whether this went well: what stays is removed with the cache of whom it names.
    if (mislabelled.length > 0)
      await removeMislabelledSteps(engine, mislabelled, async () => await cache.images()).catch(
        () => undefined
      )
    running.throwIfAborted()
    throw contextError ?? error
  } finally {
    ended.abort()
    use.ended()
    footprints.delete(footprint)
    lines.end()
    context.destroy()
  }
}

function openFootprint(
  { engine, identity, footprints, steps }: ImageBuildParts,
  owner: Owner,
  caps: StepCaps
): BuildFootprint {
  const labels = Object.entries(identity.ofImage(owner)).map(([key, value]) => `${key}=${value}`)
  const footprint = new BuildFootprint(engine, {
    owner,
    labels,
    isStep: seen => isStep(seen, caps),
    steps: async () => await steps(owner)
  })
  footprints.add(footprint)
  return footprint
}

// A Dockerfile that sets them once more would give its image to another owner.
async function checkLabels(
  { engine, identity }: ImageBuildParts,
  seen: Docker.ImageInspectInfo,
  { owner, tag, generated }: BuildOptions
): Promise<void> {
  const labels = seen.Config.Labels ?? {}
  const wrong = Object.entries(identity.ofImage(owner)).find(([key, value]) => labels[key] !== value)
  if (wrong === undefined) return
  await engine.call(
    'remove an image with foreign labels',
    async docker => {
      await docker.getImage(generated === undefined ? tag : seen.Id).remove({ force: true })
    },
    { absent: [404, 409] }
  )
  throw problems.buildLabels({ label: wrong[0] })
}

const engineOptions = (identity: Identity, options: BuildOptions): Docker.ImageBuildOptions => ({
  version: '1',
  ...(options.generated === undefined && { t: options.tag }),
  dockerfile: options.dockerfile,
  buildargs: { ...options.buildArgs },
  ...(options.isLabelled === true ? {} : { labels: identity.ofImage(options.owner) }),
  nocache: options.noCache ?? false,
  rm: true,
  forcerm: true
})

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
