import type { ContainerFileUse, ContainerRuntime, Owner } from 'busbar/api/containers'
import type { EngineClient } from '../engine-client.js'
import type { HostTools } from '../host/host-tools.js'
import { instanceLabel } from '../labels.js'
import { countCommand, type FolderCount, nothing, readCounts } from './file-count.js'
import { openFilesCommand, processesCommand, readOpenFiles, readProcesses } from './open-files.js'

interface FileUseParts {
  readonly engine: EngineClient
  /** What belongs to every given id. */
  readonly list: (owner: Owner) => Promise<readonly CountedPlaces[]>
  /** Programs that see the engine's folder and the processes of its machine. */
  readonly tools: (dataRoot: string) => Promise<HostTools>
}

/** Where the files of a container are. */
export interface CountedPlaces {
  /** Of the container. What has another id has no processes. */
  readonly id: string
  readonly owner: Owner
  readonly isRunning: boolean
  readonly folders: readonly string[]
  /** The engine does not say where they are: it is asked for nothing more of it. */
  readonly isUnknown?: boolean
}

/** So many folders in one call: their names are its arguments. */
const foldersAtOnce = 100

/**
 * What containers have taken of a disk, by a look at each of their files. The engine could list what has changed in a
 * container, and would hold the names of all of it, which may be millions of long ones; so the machine's own programs count.
 */
export class FileUse {
  /** Containers that took too long; looked at first, they would keep others from being counted. */
  readonly #slow = new Set<string>()
  /** By container, when it was last looked at. */
  readonly #countedAt = new Map<string, number>()

  constructor(private readonly parts: FileUseParts) {}

  async count(owner: Owner, options: CountOptions): Promise<readonly ContainerFileUse[]> {
    const endsAt = performance.now() + options.allMs
    const dataRoot = await this.parts.engine.call('describe itself', async docker =>
      String((await docker.info()).DockerRootDir)
    )
    const seen = (await this.parts.list(owner)).map(places => ({
      ...places,
      folders: places.folders.filter(folder => folder.startsWith(`${dataRoot}/`))
    }))
    if (seen.length === 0) return []
    const run = running(await this.parts.tools(dataRoot))
    await checkTools(run)
    const ordered = [...seen].sort((a, b) => this.#compare(a.id, b.id))
    const look = { run, dataRoot, endsAt, options }
    const uses: ContainerFileUse[] = []
    if (options.still === true)
      for (const one of ordered)
        uses.push(...(await this.#paused(one, async () => await this.#look([one], look))))
    else uses.push(...(await this.#look(ordered, look)))
    if (Object.keys(owner).length === 0) this.#forgetAllBut(new Set(seen.map(({ id }) => id)))
    return uses
  }

  /** What its processes do meanwhile can hide nothing. */
  async #paused<T>({ id, isRunning, isUnknown }: CountedPlaces, look: () => Promise<T>): Promise<T> {
    const { engine } = this.parts
    if (!isRunning || isUnknown === true) return await look()
    await engine.call('pause a container', async docker => await docker.getContainer(id).pause(), {
      absent: [404, 409]
    })
    try {
      return await look()
    } finally {
      await unpause(engine, id)
    }
  }

  async #look(
    ordered: readonly CountedPlaces[],
    { run, dataRoot, endsAt, options }: Look
  ): Promise<readonly ContainerFileUse[]> {
    const counts = await countFolders(
      // What took too long and has ended since is as it was.
      ordered.flatMap(({ id, isRunning, folders }) => (isRunning || !this.#slow.has(id) ? folders : [])),
      run,
      { ...options, endsAt }
    )
    // However long names took.
    const openEndsAt = performance.now() + options.allMs
    const processes = readProcesses(await run(processesCommand()))
    const uses: ContainerFileUse[] = []
    for (const one of ordered) {
      const pids = processes.get(one.id) ?? []
      const isLate = pids.length > 0 && performance.now() >= openEndsAt
      const output = pids.length === 0 || isLate ? '' : await run(openFilesCommand(dataRoot, pids, options))
      const nameless = readOpenFiles(output)
      const named = one.folders.map(folder => counts.get(folder) ?? unseen)
      const isUnseen = isLate || one.isUnknown === true || named.some(count => count.isUnseen)
      const use = useOf(one, named, nameless)
      uses.push(isUnseen ? { ...use, isCut: true } : use)
      this.#note(one.id, { isUnseen, isCut: use.isCut })
    }
    return uses
  }

  /** First those that are soon done, of these the one that has waited longest. */
  #compare(a: string, b: string): number {
    const [slow, since] = [this.#slow, this.#countedAt]
    return Number(slow.has(a)) - Number(slow.has(b)) || (since.get(a) ?? 0) - (since.get(b) ?? 0)
  }

  #note(id: string, { isUnseen, isCut }: { readonly isUnseen: boolean; readonly isCut: boolean }): void {
    if (!isUnseen) this.#countedAt.set(id, performance.now())
    if (isCut) this.#slow.add(id)
    else if (!isUnseen) this.#slow.delete(id)
  }

  #forgetAllBut(ids: ReadonlySet<string>): void {
    for (const id of this.#slow) if (!ids.has(id)) this.#slow.delete(id)
    for (const id of this.#countedAt.keys()) if (!ids.has(id)) this.#countedAt.delete(id)
  }
}

type CountOptions = Parameters<ContainerRuntime['fileUse']>[1]
interface Look {
  readonly run: Run
  readonly dataRoot: string
  readonly endsAt: number
  readonly options: CountOptions
}

type Run = (argv: readonly [string, ...string[]]) => Promise<string>

/** Those of an installation. */
export async function unpauseAll(engine: EngineClient, instanceId: string): Promise<void> {
  const label = [`${instanceLabel}=${instanceId}`]
  const paused = await engine.call(
    'list paused containers',
    async docker => await docker.listContainers({ filters: { label, status: ['paused'] } })
  )
  for (const { Id: id } of paused) await unpause(engine, id)
}

/** One that does not run, or is not paused, needs nothing. */
async function unpause(engine: EngineClient, id: string): Promise<void> {
  await engine.call('go on with a container', async docker => await docker.getContainer(id).unpause(), {
    absent: [404, 409, 500]
  })
}

const running =
  (programs: HostTools): Run =>
  async argv => {
    const { code, output, errors } = await programs.run(argv)
    if (code !== 0) throw new Error(`${argv[0]} ended with ${code}: ${errors.slice(0, 500)}`)
    return output
  }

/** Without them, nothing would be found and all seem to be well. */
async function checkTools(run: Run): Promise<void> {
  await run(['timeout', '-k', '1', '60', 'find', '/', '-maxdepth', '0', '-newerct', '@0', '-printf', 'o'])
  await run(['awk', 'BEGIN { }'])
}

const unseen: FolderCount = { ...nothing, isUnseen: true }

async function countFolders(
  folders: readonly string[],
  run: Run,
  { endsAt, ...options }: CountOptions & { readonly endsAt: number }
): Promise<ReadonlyMap<string, FolderCount>> {
  const counts = new Map<string, FolderCount>()
  for (let at = 0; at < folders.length; at += foldersAtOnce) {
    const some = folders.slice(at, at + foldersAtOnce)
    const allMs = Math.max(0, endsAt - performance.now())
    const found = readCounts(await run(countCommand(some, { ...options, allMs })))
    for (const [index, folder] of some.entries()) counts.set(folder, found[index] ?? unseen)
  }
  return counts
}

function useOf(
  { id, owner, isRunning }: CountedPlaces,
  named: readonly FolderCount[],
  nameless: ReturnType<typeof readOpenFiles>
): ContainerFileUse {
  const sumOf = (part: Exclude<keyof FolderCount, 'isCut' | 'isUnseen'>): number =>
    Math.round(named.reduce((sum, count) => sum + count[part], 0))
  return {
    id,
    owner,
    isRunning,
    inodes: sumOf('inodes') + nameless.files,
    names: sumOf('names') + nameless.files,
    recentInodes: sumOf('recent') + nameless.files,
    bytes: sumOf('bytes'),
    recentBytes: sumOf('recentBytes'),
    namelessBytes: nameless.bytes,
    isCut: nameless.isCut || named.some(({ isCut }) => isCut)
  }
}
