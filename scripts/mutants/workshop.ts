import { execFileSync, spawn } from 'node:child_process'
import {
  chmodSync,
  cpSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync
} from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import type { Mutant } from './mutations.js'

type Outcome = 'passed' | 'failed' | 'hung'

interface TestRun {
  readonly test: string
  readonly limitMs: number
  /** Where V8 writes what was executed. */
  readonly coverage?: string
}

/** A copy of the working tree, with a database server of its own, in which one defect at a time is tried. */
export class Workshop {
  /** The process group of the test that runs. */
  #running: number | undefined

  private constructor(
    readonly directory: string,
    private readonly environment: NodeJS.ProcessEnv
  ) {}

  /** Copies what git knows and what is new; dependencies are those of `root`. */
  static copyOf(root: string, environment: NodeJS.ProcessEnv): Workshop {
    const directory = mkdtempSync(join(tmpdir(), 'bm-'))
    // The database server is another user, where root runs the tests.
    chmodSync(directory, 0o755)
    const files = execFileSync('git', ['ls-files', '-z', '-co', '--exclude-standard'], {
      cwd: root,
      encoding: 'utf8',
      maxBuffer: 64 * 1024 * 1024
    })
    for (const file of files.split('\0')) {
      if (file === '' || !existsSync(join(root, file))) continue
      mkdirSync(dirname(join(directory, file)), { recursive: true })
      cpSync(join(root, file), join(directory, file))
    }
    symlinkSync(join(root, 'node_modules'), join(directory, 'node_modules'))
    mkdirSync(join(directory, '.lab', 'tmp'), { recursive: true })
    return new Workshop(directory, { ...environment, TMPDIR: join(directory, '.lab', 'tmp') })
  }

  /** Writes the defect into the copy, and takes it out again after `use`. */
  async with<T>(mutant: Mutant, use: () => Promise<T>): Promise<T> {
    const path = join(this.directory, mutant.file)
    const source = readFileSync(path, 'utf8')
    writeFileSync(path, source.slice(0, mutant.start) + mutant.replacement + source.slice(mutant.end))
    try {
      return await use()
    } finally {
      writeFileSync(path, source)
    }
  }

  /** One file of tests in processes of its own, which all are ended with it. */
  run({ test, limitMs, coverage }: TestRun): Promise<Outcome> {
    const child = spawn(
      process.execPath,
      ['--import=./scripts/test-loader.mjs', '--conditions=busbar-source', test],
      {
        cwd: this.directory,
        detached: true,
        stdio: 'ignore',
        env: {
          ...this.environment,
          // A little more than ours: a hang is to be told from a failure.
          TAP_TIMEOUT: String(Math.ceil(limitMs / 1000) + 30),
          ...(coverage === undefined ? { TAP_BAIL: '1' } : { NODE_V8_COVERAGE: coverage })
        }
      }
    )
    this.#running = child.pid
    return new Promise((resolve, reject) => {
      let hung = false
      const timer = setTimeout(() => {
        hung = true
        signalGroup(child.pid, 'SIGKILL')
      }, limitMs)
      child.once('error', reject)
      child.once('exit', code => {
        clearTimeout(timer)
        signalGroup(child.pid, 'SIGKILL')
        this.#running = undefined
        resolve(hung ? 'hung' : code === 0 ? 'passed' : 'failed')
      })
    })
  }

  /** Ends what runs and the database server, and removes the copy. */
  close(): void {
    signalGroup(this.#running, 'SIGKILL')
    try {
      execFileSync(
        process.execPath,
        ['--import=./scripts/test-loader.mjs', '--conditions=busbar-source', 'test/cluster/stop.ts'],
        { cwd: this.directory, env: this.environment, stdio: 'ignore' }
      )
    } catch (error) {
      console.error(`the database server of ${this.directory} was not stopped: ${String(error)}`)
    } finally {
      rmSync(this.directory, { recursive: true, force: true, maxRetries: 5 })
    }
  }
}

/** What a trial needs of a workshop. */
export type Bench = Pick<Workshop, 'directory' | 'run' | 'with'>

function signalGroup(groupId: number | undefined, signal: NodeJS.Signals): void {
  if (groupId === undefined) return
  try {
    process.kill(-groupId, signal)
  } catch {
    // Nothing of the group is left.
  }
}
