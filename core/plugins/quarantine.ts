import { mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { type Phase, suspect } from './crash-suspects.js'

/** What a plugin has begun in its `start` may take the process down a little later. */
const settlingMs = 60_000

/**
 * Remembers, outside the process, which plugins are being started or were just now: one that takes the whole process
 * down is found at the next boot. Files and not the database: they must be written before the crash, at once.
 */
export class StartMarks {
  readonly #file: string
  readonly #suspectsFile: string
  /** With the timers of those that are settling. */
  readonly #marks = new Map<string, NodeJS.Timeout | undefined>()
  #suspects: ReadonlySet<string> = new Set()
  #isClosed = false

  constructor(readonly directory: string) {
    mkdirSync(directory, { recursive: true })
    this.#file = join(directory, `starting-${process.pid}`)
    this.#suspectsFile = join(directory, 'suspects')
  }

  begin(plugin: string): void {
    this.#set(plugin, undefined)
  }

  /** It has started; third-party code is watched for a minute more. */
  settle(plugin: string, isThirdParty: boolean): void {
    if (!isThirdParty) {
      this.end(plugin)
      return
    }
    const timer = setTimeout(() => {
      this.end(plugin)
      this.#keepSuspects(new Set([...this.#suspects].filter(other => other !== plugin)))
    }, settlingMs).unref()
    this.#set(plugin, timer)
  }

  end(plugin: string): void {
    clearTimeout(this.#marks.get(plugin))
    if (this.#marks.delete(plugin)) this.#write()
  }

  /** The process ends as it should. */
  close(): void {
    this.#isClosed = true
    for (const timer of this.#marks.values()) clearTimeout(timer)
    this.#marks.clear()
    this.#write()
  }

  /** The plugins that are to be kept off because of processes that are no longer alive, and why; their marks are removed. */
  takeCrashed(): ReadonlyMap<string, string> {
    this.#suspects = new Set(linesOf(this.#suspectsFile))
    const deaths: Array<ReadonlyMap<string, Phase>> = []
    for (const name of readdirSync(this.directory)) {
      const pid = /^starting-(\d+)$/.exec(name)?.[1]
      if (pid === undefined || (Number(pid) !== process.pid && isAlive(Number(pid)))) continue
      const file = join(this.directory, name)
      deaths.push(
        new Map(
          linesOf(file).map(line => {
            const [plugin = '', phase] = line.split(' ')
            return [plugin, phase === 'settling' ? phase : 'starting']
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
      timer === undefined ? plugin : `${plugin} settling`
    )
    writeLines(this.#file, lines)
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

function writeLines(file: string, lines: readonly string[]): void {
  if (lines.length === 0) rmSync(file, { force: true })
  else writeFileSync(file, lines.map(line => `${line}\n`).join(''))
}

function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0)
    return true
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === 'EPERM'
  }
}
