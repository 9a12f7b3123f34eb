import { mkdir, mkdtemp, readdir, readlink, realpath, rm, stat } from 'node:fs/promises'
import { join, sep } from 'node:path'
import type { Instance, Log } from 'busbar/sdk'

const longestUseMs = 24 * 60 * 60_000

// A process id alone is not enough: in a container it is the same after every start.
const processMark = `${process.pid}-${Math.round(performance.timeOrigin).toString(36)}`

/** Where sources are checked out: one folder for each deployment, gone when it ends. */
export class Workspaces {
  readonly #removals = new Set<Promise<void>>()

  constructor(
    private readonly instance: Pick<Instance, 'directory'>,
    private readonly log: Log
  ) {}

  /**
   * Hands `use` an empty folder, which is removed with everything in it: after a failure before this rejects, after a
   * success meanwhile, as nobody who waits for the result needs to wait for that.
   */
  async with<T>(name: string, use: (directory: string) => Promise<T>): Promise<T> {
    const directory = await mkdtemp(join(await this.#root(), `${name}.${processMark}.`))
    try {
      const result = await use(directory)
      this.#removeMeanwhile(directory)
      return result
    } catch (error) {
      await this.#remove(directory)
      throw error
    }
  }

  /** Whether the disk is about to get back what an ended use has taken. */
  get isRemoving(): boolean {
    return this.#removals.size > 0
  }

  /** Resolves when the removals under way have ended. */
  async settled(): Promise<void> {
    await Promise.all(this.#removals)
  }

  /** Removes what earlier processes left when they died. Folders of those that live, and of this one, stay. */
  async removeLeftovers(now: Date): Promise<void> {
    const root = await this.#root()
    for (const name of await readdir(root)) {
      const directory = join(root, name)
      const { mtimeMs } = await stat(directory).catch(() => ({ mtimeMs: now.getTime() }))
      const isOld = now.getTime() - mtimeMs > longestUseMs
      if (!isOld && isInUse(name)) continue
      await endProcessesIn(directory)
      await this.#remove(directory)
    }
  }

  async #root(): Promise<string> {
    const root = join(await this.instance.directory(), 'work')
    await mkdir(root, { recursive: true, mode: 0o700 })
    return root
  }

  #removeMeanwhile(directory: string): void {
    const removal = this.#remove(directory).finally(() => this.#removals.delete(removal))
    this.#removals.add(removal)
  }

  // A failure here must not hide how the build ended; the next start tries again.
  async #remove(directory: string): Promise<void> {
    await rm(directory, { recursive: true, force: true, maxRetries: 3 }).catch((error: unknown) => {
      this.log.warn({ err: error, directory }, 'a work directory could not be removed')
    })
  }
}

/**
 * Ends what a platform that was killed has left at work in a folder. A git whose server is silent would wait there
 * for a minute. Where the system does not tell who works where (it does on Linux), such a process ends by itself.
 */
async function endProcessesIn(directory: string): Promise<void> {
  const folder = await realpath(directory).catch(() => directory)
  for (const pid of await readdir('/proc').catch(() => [])) {
    if (!/^\d+$/.test(pid)) continue
    const at = await readlink(`/proc/${pid}/cwd`).catch(() => '')
    if (at !== folder && !at.startsWith(folder + sep)) continue
    try {
      process.kill(Number(pid), 'SIGKILL')
    } catch {
      // It has ended meanwhile.
    }
  }
}

function isInUse(name: string): boolean {
  const mark = name.split('.').at(-2) ?? ''
  if (mark === processMark) return true
  const pid = Number(mark.split('-')[0])
  if (!Number.isInteger(pid) || pid <= 0 || pid === process.pid) return false
  try {
    process.kill(pid, 0)
    return true
  } catch (error) {
    return error instanceof Error && 'code' in error && error.code === 'EPERM'
  }
}
