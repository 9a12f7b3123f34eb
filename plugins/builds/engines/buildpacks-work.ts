import { createReadStream } from 'node:fs'
import { stat } from 'node:fs/promises'
import type { Readable } from 'node:stream'
import { imageReferenceShape } from 'busbar/api/images'
import type { Problem } from 'busbar/sdk'
import type { BuildContext, BuildpacksProgram } from '../api.js'
import { problems } from '../problems.js'
import { parseBounded } from '../registry/client/bounded-json.js'
import { explainDenied, ToolOutput } from '../tool-output.js'
import type { ContainerFiles } from './container-files.js'
import { noImageCode } from './dockerd-buildpacks.js'
import { withTag } from './dockerd-program.js'
import { supplyBases } from './engine-bases.js'
import { isDiskFull } from './engine-failure.js'
import { buildEngineProblems } from './engine-problems.js'
import { runInEngine } from './engine-run.js'
import { supplyTool } from './engine-tools.js'
import type { IsolatedParts } from './isolated-build.js'
import type { BuildFrame, Place, ReadyBuild } from './ready-build.js'

/** A source tree that `pack` builds, for a build engine. */
export interface BuildpacksWork {
  /** The file of `pack` on the platform's machine. */
  readonly tool: string
  /** A tar of the source. */
  readonly context: () => Readable
  /** An image, with its tag or digest. */
  readonly builder: string
  readonly buildpacks: readonly GivenBuildpack[]
  /** As `pack` takes them: `args` name those in `env`. */
  readonly variables: {
    readonly args: readonly string[]
    readonly env: Readonly<Record<string, string>>
  }
  /** Volumes of the application in the engine. */
  readonly caches: { readonly build: string; readonly launch: string }
}

/**
 * As it is written; `image`: what it means where that is an image, which it is for certain, or if the platform has one of this name;
 * `file`: where the platform has it.
 */
export interface GivenBuildpack {
  readonly reference: string
  readonly image?: { readonly name: string; readonly isCertain: boolean }
  readonly file?: string
}

const program = 'pack'

/** Puts into the engine what the build is made of. */
export async function readyBuildpacks(
  parts: IsolatedParts,
  place: Place,
  build: BuildFrame & BuildpacksWork,
  context: BuildContext
): Promise<ReadyBuild> {
  const { files, directory } = place
  const buildpacksProgram = place.program.buildpacks
  if (buildpacksProgram === undefined) throw new Error(`${place.program.name} is no engine that pack can use`)
  const folders = ['context', 'home', 'tmp', 'buildpacks'].map(name => `${directory}/${name}`)
  await files.run(['mkdir', '-p', ...folders])
  const images = new EngineImages(parts, { ...place, buildpacksProgram }, build, context)
  await files.unpack(`${directory}/context`, build.context())
  const tool = await supplyTool(files, { path: build.tool, workDirectory: directory })
  const builder = await images.take(build.builder)
  const { runImage, lifecycleImage } = await images.describe(builder)
  const buildpacks: string[] = []
  for (const [at, one] of build.buildpacks.entries())
    buildpacks.push(await given(files, images, one, `${directory}/buildpacks`, `${at}.cnb`))
  const output = new ToolOutput()
  return {
    bases: images.bases,
    command: buildpacksProgram.build({
      directory,
      tool,
      builder,
      buildpacks,
      ...(runImage !== undefined && { runImage: await images.take(runImage) }),
      ...(lifecycleImage !== undefined && { lifecycleImage: await images.take(lifecycleImage) }),
      variables: build.variables,
      caches: build.caches,
      noCache: build.noCache
    }),
    onLine: ({ text, stream }) => {
      const msg = output.take(text)
      if (msg !== undefined) context.log({ level: 'info', stream, msg })
    },
    failure: exitCode => packProblem(output, exitCode, build.limits.memoryBytes),
    cleanUp: buildpacksProgram.cleanUp(build.owner.deploymentId)
  }
}

/** As `pack` is to be told it. */
async function given(
  files: ContainerFiles,
  images: EngineImages,
  { reference, image, file }: GivenBuildpack,
  folder: string,
  name: string
): Promise<string> {
  if (file !== undefined) {
    const { size } = await stat(file)
    await files.writeLarge(folder, { name, size, content: createReadStream(file) })
    return `${folder}/${name}`
  }
  if (image === undefined) return reference
  const found = image.isCertain ? await images.take(image.name) : await images.find(image.name)
  return found === undefined ? reference : `docker://${found}`
}

/** Images in the engine, by names of ours. */
class EngineImages {
  readonly bases: Array<{ readonly id: string }> = []
  #refusal: Problem | undefined

  constructor(
    private readonly parts: IsolatedParts,
    private readonly place: Place & { readonly buildpacksProgram: BuildpacksProgram },
    private readonly build: BuildFrame,
    private readonly context: BuildContext
  ) {}

  /** What the platform has of this name, or gets by an account. */
  async find(name: string): Promise<string | undefined> {
    const { files, program, directory, buildpacksProgram } = this.place
    const wanted = { files, program, workDirectory: directory, names: [name], owner: this.build.owner }
    const { bases, refusals } = await supplyBases(this.parts, wanted, this.context)
    this.#refusal = refusals.get(name)
    const [base] = bases
    if (base === undefined) return undefined
    this.bases.push(base)
    const { argv, env } = buildpacksProgram.nameBase(base.digest)
    await files.run(argv, env)
    return buildpacksProgram.nameOfBase(base.digest)
  }

  /** The same, or what the engine pulls as everybody may. */
  async take(name: string): Promise<string> {
    const found = await this.find(name)
    if (found !== undefined) return found
    const { files, directory, buildpacksProgram } = this.place
    const { containerId } = files
    const own = buildpacksProgram.nameOfPulled(name)
    const output = new ToolOutput()
    const code = await runInEngine(
      this.parts,
      {
        containerId,
        directory,
        command: buildpacksProgram.pull(name, own),
        onLine: ({ text, stream }) => {
          const msg = output.take(text)
          if (msg !== undefined) this.context.log({ level: 'debug', stream, msg })
        }
      },
      this.context.signal
    )
    if (code === 0) return own
    if (isDiskFull(output.text)) throw buildEngineProblems.diskFull({ reason: output.reason })
    throw this.#refusal ?? problems.toolImage({ program, image: name, reason: output.reason })
  }

  /** Images that a builder says it needs. */
  async describe(builder: string): Promise<BuilderImages> {
    const { files, directory, buildpacksProgram } = this.place
    const file = `${directory}/builder.json`
    const { argv, env } = buildpacksProgram.describe(builder, file)
    await files.run(argv, env)
    return readBuilder(await files.read(file, maxMetadataBytes))
  }
}

const maxMetadataBytes = 4 * 2 ** 20

interface BuilderImages {
  readonly runImage?: string
  readonly lifecycleImage?: string
}

/** Of a label that a stranger has written: what is no builder, `pack` refuses. */
export function readBuilder(label: Buffer): BuilderImages {
  let metadata: unknown
  try {
    metadata = parseBounded(label)
  } catch {
    return {}
  }
  const member = (value: unknown, ...path: readonly (string | number)[]): unknown =>
    path.reduce<unknown>(
      (at, key) =>
        typeof at === 'object' && at !== null && Object.hasOwn(at, key)
          ? (at as Record<string | number, unknown>)[key]
          : undefined,
      value
    )
  const runImage = member(metadata, 'images', 0, 'image') ?? member(metadata, 'stack', 'runImage', 'image')
  const version = member(metadata, 'lifecycle', 'version')
  return {
    ...(typeof runImage === 'string' &&
      imageReferenceShape.test(runImage) && { runImage: withTag(runImage) }),
    ...(typeof version === 'string' &&
      /^[\w.-]{1,100}$/.test(version) && { lifecycleImage: `docker.io/buildpacksio/lifecycle:${version}` })
  }
}

function packProblem(output: ToolOutput, exitCode: number, memoryBytes: number): Problem {
  const { text, reason } = output
  if (exitCode === noImageCode) return problems.toolNoImage({ program, image: 'as the result of this build' })
  if (isDiskFull(text)) return buildEngineProblems.diskFull({ reason })
  if (/\bstatus code: 137\b/.test(text))
    return buildEngineProblems.killed({
      command: 'pack build',
      code: 137,
      memory: Math.round(memoryBytes / 2 ** 20)
    })
  return (
    explainDenied(program, text) ??
    problems.toolFailed({ program, how: `ended with exit code ${exitCode}`, reason })
  )
}
