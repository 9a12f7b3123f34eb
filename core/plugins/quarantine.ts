import { mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'

/**
 * Remembers, outside the process, which plugin is being started: one that takes the whole process down
 * is found at the next boot. A file and not the database: it must be written before the crash, at once.
 */
export class StartMarks {
  readonly #file: string

  constructor(readonly directory: string) {
    mkdirSync(directory, { recursive: true })
    this.#file = join(directory, `starting-${process.pid}`)
  }

  begin(plugin: string): void {
    writeFileSync(this.#file, plugin)
  }

  end(): void {
    rmSync(this.#file, { force: true })
  }

  /** The plugins that processes which are no longer alive were starting; their marks are removed. */
  takeCrashed(): string[] {
    const crashed: string[] = []
    for (const name of readdirSync(this.directory)) {
      const pid = /^starting-(\d+)$/.exec(name)?.[1]
      if (pid === undefined || (Number(pid) !== process.pid && isAlive(Number(pid)))) continue
      crashed.push(readFileSync(join(this.directory, name), 'utf8'))
      rmSync(join(this.directory, name), { force: true })
    }
    return crashed.filter(plugin => plugin !== '')
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
