import { mkdirSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { hostname } from 'node:os'
import { join } from 'node:path'
import { type Phase, suspect } from './crash-suspects.js'

/** What a plugin has begun in its `start` may take the process down a little later. */
const watchedMs = 60_000
/** Longer than any start, and the minute after. */
const foreignMs = 4 * 60_000
/** Process ids mean nothing to another machine or container. */
const host = hostname().replace(/[^\w.-]/g, '_')

/**
 * Remembers, outside the process, which plugins are being started or were just now: one that takes the whole process
 * down is found at the next boot. Files and not the database: they must be written before the crash, at once.
 */
export class StartMarks {
  readonly #file: string
  readonly #suspectsFile: string
  /** With the timers of those that have just started. */
  readonly #marks = new Map<string, NodeJS.Timeout | undefined>()
  #suspects: ReadonlySet<string> = new Set()
  #isClosed = false

  constructor(
    readonly directory: string,
    private readonly watchesForMs = watchedMs
  ) {
    mkdirSync(directory, { recursive: true })
    this.#file = join(directory, `starting-${host}-${process.pid}`)
    this.#suspectsFile = join(directory, 'suspects')
  }

  begin(plugin: string): void {
    this.#set(plugin, undefined)
  }

  /** It has started, or its start has failed and the earlier version goes on; a watched one is watched for a minute more. */
  started(plugin: string, isWatched: boolean): void {
    if (!isWatched) {
      this.end(plugin)
      return
    }
    const timer = setTimeout(() => {
      this.forget(plugin)
    }, this.watchesForMs).unref()
    this.#set(plugin, timer)
  }

  end(plugin: string): void {
    clearTimeout(this.#marks.get(plugin))
    if (this.#marks.delete(plugin)) this.#write()
  }

  /** It has been stopped: it is no suspect of the next crash. */
  forget(plugin: string): void {
    this.end(plugin)
    this.#clearSuspects([plugin])
  }

  /** The process ends in an orderly way. */
  close(): void {
    this.#isClosed = true
    const marked = [...this.#marks.keys()]
    for (const timer of this.#marks.values()) clearTimeout(timer)
    this.#marks.clear()
    this.#write()
    this.#clearSuspects(marked)
  }

  /** The plugins that are to be kept off because of processes that are no longer alive, and why; their marks are removed. */
  takeCrashed(): ReadonlyMap<string, string> {
    this.#suspects = new Set(linesOf(this.#suspectsFile))
    const deaths: Array<ReadonlyMap<string, Phase>> = []
    for (const name of readdirSync(this.directory)) {
      const file = join(this.directory, name)
      if (!isOfDead(name, file)) continue
      deaths.push(
        new Map(
          linesOf(file).map(line => {
            const [plugin = '', phase] = line.split(' ')
            return [plugin, phase === 'started' ? phase : 'starting']
          })
        )
      )
      rmSync(file, { force: true })
    }
    const { quarantined, suspects } = suspect(deaths, this.#suspects)
    this.#keepSuspects(suspects)
    return quarantined
  }

  #set(plugin: string, timer: NodeJS.Timeout | undefined): void {
    clearTimeout(this.#marks.get(plugin))
    if (this.#isClosed) {
      clearTimeout(timer)
      return
    }
    this.#marks.set(plugin, timer)
    this.#write()
  }

  #write(): void {
    const lines = [...this.#marks].map(([plugin, timer]) =>
      timer === undefined ? plugin : `${plugin} started`
    )
    writeLines(this.#file, lines)
  }

  #clearSuspects(plugins: readonly string[]): void {
    this.#keepSuspects(new Set([...this.#suspects].filter(one => !plugins.includes(one))))
  }

  #keepSuspects(suspects: ReadonlySet<string>): void {
    if (suspects.size === 0 && this.#suspects.size === 0) return
    this.#suspects = suspects
    writeLines(this.#suspectsFile, [...suspects])
  }
}

function linesOf(file: string): string[] {
  try {
    return readFileSync(file, 'utf8')
      .split('\n')
      .filter(line => line !== '')
  } catch {
    return []
  }
}

/** A disk that is full keeps no plugin from starting or stopping. */
function writeLines(file: string, lines: readonly string[]): void {
  try {
    if (lines.length === 0) rmSync(file, { force: true })
    else writeFileSync(file, lines.map(line => `${line}\n`).join(''))
  } catch (error) {
    if (!['ENOSPC', 'EDQUOT'].includes((error as NodeJS.ErrnoException).code ?? '')) throw error
  }
}

/** On this machine, or in this container, by the process id; of another one that shares the folder, by the age of the file. */
function isOfDead(name: string, file: string): boolean {
  const [, owner, pid] = /^starting-(?:(.+)-)?(\d+)$/.exec(name) ?? []
  if (pid === undefined) return false
  if (owner === undefined || owner === host) return Number(pid) === process.pid || !isAlive(Number(pid))
  try {
    return Date.now() - statSync(file).mtimeMs > foreignMs
  } catch {
    return false
  }
}

function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0)
    return true
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === 'EPERM'
  }
}
