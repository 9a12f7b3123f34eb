import type { Owner } from 'busbar/api/containers'
import type { BuildStep, BuildUsage } from 'busbar/api/images'
import type Docker from 'dockerode'
import type { EngineClient } from './engine-client.js'
import type { CountedPlaces } from './files/container-file-use.js'
import { placesOf, topFolder } from './files/container-places.js'
import type { Footprint } from './footprint.js'

/** So many words of the engine are looked into at once; a build can print them too. */
const mostTold = 64

// The types of dockerode leave sizes out.
const withSize: Docker.ContainerInspectOptions & { readonly size: true } = { size: true }
const sizeOf = ({ SizeRw = 0 }: Docker.ContainerInspectInfo & { readonly SizeRw?: number }): number => SizeRw

interface FootprintOptions {
  readonly owner: Owner
  /** The labels of images that are built for the owner, as the engine filters by them. */
  readonly labels: readonly string[]
  /** True for a container that is a step of this build, as far as can be known. */
  readonly isStep: (seen: Docker.ContainerInspectInfo) => boolean
  /** The containers of its steps that there are. */
  readonly steps: () => Promise<readonly BuildStep[]>
}

/**
 * What one build has written on the engine so far: the images of the steps that have ended, and the container of
 * the one that runs. The engine's words say which container that is. A step that prints such words can only have
 * containers of its own kind counted as its own, or none.
 */
export class BuildFootprint implements Footprint {
  /** By the engine's clock, to the second; undefined while it has not begun. */
  #begunAt: number | undefined
  readonly #told = new Set<string>()
  /** The most that each container of a step was seen to hold. */
  readonly #steps = new Map<string, number>()
  /** Of each container that is there now: what the engine is still to copy of it; of one that has ended nothing, as its image may be there. */
  readonly #running = new Map<string, number>()
  readonly #baseSizes = new Map<string, number>()
  /** By image, where its files are. */
  readonly #folderOfImage = new Map<string, readonly string[]>()
  #imageBytes = 0
  #hasNews = true

  constructor(
    private readonly engine: EngineClient,
    private readonly options: FootprintOptions
  ) {}

  /**
   * One build of an owner runs at a time, so what is made from now on is made by this one. `at`: what the engine says
   * that the time is. To note which images there are would make an engine that has hundreds list them for each build.
   */
  begin(at: Date): void {
    this.#begunAt = Math.floor(at.getTime() / 1000)
  }

  /** Reads the words of the engine, among which are those of the steps. */
  read(text: string): void {
    if (!text.startsWith(' ---> ')) return
    this.#hasNews = true
    const container = /^ ---> Running in ([0-9a-f]{12})\n?$/.exec(text)?.[1]
    if (container === undefined) return
    if (this.#told.size < mostTold) this.#told.add(container)
  }

  async measure(): Promise<BuildUsage> {
    for (const id of [...this.#told, ...this.#running.keys()]) await this.#measureStep(id)
    if (this.#hasNews) {
      this.#hasNews = false
      this.#imageBytes = await this.#measureImages()
    }
    const [steps, running] = [sumOf(this.#steps), sumOf(this.#running)]
    // Either sum can miss something: a step that ended between two looks, an image that is not labelled yet.
    return {
      owner: this.options.owner,
      bytes: Math.max(steps, this.#imageBytes + running),
      runningStepBytes: running,
      // What a step holds open without a name, has in a volume, or the engine copies for COPY, is not found.
      isPartial: true
    }
  }

  async places(): Promise<readonly CountedPlaces[]> {
    const { owner, steps } = this.options
    // By their labels: the words of the engine are among those of the step, which could print any number of them.
    const seen = await Promise.all((await steps()).map(async ({ id }) => await this.#step(id)))
    return [
      ...seen.flatMap(step => (step === undefined ? [] : [placesOf(step, owner)])),
      {
        id: `steps of ${owner.deploymentId}`,
        owner,
        isRunning: true,
        folders: await this.#madeFoldersOf(await this.#made())
      }
    ]
  }

  /** A step that writes nothing makes an image whose files are those of the one below: at the beginning, of the base. */
  async #madeFoldersOf(made: readonly Docker.ImageInfo[]): Promise<readonly string[]> {
    const own = new Set(made.map(({ Id }) => Id))
    const folders = new Set<string>()
    for (const { Id } of made) for (const folder of await this.#folders(Id)) folders.add(folder)
    for (const { ParentId } of made)
      if (ParentId !== '' && !own.has(ParentId))
        for (const folder of await this.#folders(ParentId)) folders.delete(folder)
    return [...folders]
  }

  async #folders(image: string): Promise<readonly string[]> {
    const known = this.#folderOfImage.get(image)
    if (known !== undefined) return known
    const seen = await this.engine.call(
      'find the files of an image',
      async docker => await docker.getImage(image).inspect(),
      { absent: [404] }
    )
    const folders = seen === undefined ? [] : topFolder(seen)
    this.#folderOfImage.set(image, folders)
    return folders
  }

  async #step(
    id: string,
    options: Docker.ContainerInspectOptions = {}
  ): Promise<Docker.ContainerInspectInfo | undefined> {
    const seen = await this.engine.call(
      'measure a step of a build',
      async docker => await docker.getContainer(id).inspect(options),
      { absent: [404] }
    )
    return seen !== undefined && this.options.isStep(seen) ? seen : undefined
  }

  async #measureStep(id: string): Promise<void> {
    this.#told.delete(id)
    const seen = await this.#step(id, withSize)
    if (seen === undefined) {
      this.#running.delete(id)
      return
    }
    // Of one that has ended, the copy is made already.
    this.#running.set(seen.Id, seen.State.Running ? sizeOf(seen) : 0)
    this.#steps.set(seen.Id, Math.max(this.#steps.get(seen.Id) ?? 0, sizeOf(seen)))
  }

  async #made(): Promise<readonly Docker.ImageInfo[]> {
    const begunAt = this.#begunAt
    return begunAt === undefined ? [] : (await this.#images()).filter(({ Created }) => Created >= begunAt)
  }

  async #measureImages(): Promise<number> {
    const made = await this.#made()
    const sizes = new Map(made.map(({ Id, Size }) => [Id, Size]))
    let bytes = 0
    for (const { Size, ParentId } of made)
      bytes += Math.max(0, Size - (sizes.get(ParentId) ?? (await this.#baseSize(ParentId))))
    return bytes
  }

  async #images(): Promise<Docker.ImageInfo[]> {
    return await this.engine.call(
      'list images',
      async docker => await docker.listImages({ all: true, filters: { label: [...this.options.labels] } }),
      { lists: true }
    )
  }

  async #baseSize(id: string): Promise<number> {
    const known = this.#baseSizes.get(id)
    if (known !== undefined || id === '') return known ?? 0
    const size = (
      await this.engine.call('measure an image', async docker => await docker.getImage(id).inspect(), {
        absent: [404]
      })
    )?.Size
    // Of one that is gone nothing is claimed.
    this.#baseSizes.set(id, size ?? Infinity)
    return size ?? Infinity
  }
}

const sumOf = (sizes: ReadonlyMap<string, number>): number =>
  [...sizes.values()].reduce((sum, bytes) => sum + bytes, 0)
