import { execFile, spawn } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { chmod, copyFile, mkdir, mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { basename, dirname, join } from 'node:path'
import { promisify } from 'node:util'
import type { ContainerTerminal } from 'busbar/api/containers'
import { until } from 'busbar/sdk/testing'
import type Docker from 'dockerode'
import { imageInstanceLabel } from '../labels.js'
import type { Lab } from './lab.js'

const run = promisify(execFile)

export const terminalId = (): string => randomBytes(16).toString('hex')

/** What a terminal has written so far, read all the time. */
export class Screen {
  text = ''
  hasEnded = false

  constructor(readonly terminal: ContainerTerminal) {
    void this.#read()
  }

  async type(text: string): Promise<void> {
    await this.terminal.write(Buffer.from(text))
  }

  async shows(pattern: RegExp): Promise<RegExpExecArray> {
    return await until(() => pattern.exec(this.text) ?? undefined, `a terminal shows ${String(pattern)}`)
  }

  async #read(): Promise<void> {
    for await (const piece of this.terminal.output) this.text += piece.toString()
    this.hasEnded = true
  }
}

/** Commands of what runs in a container, as the engine's machine sees it. */
export async function processesIn(docker: Docker, containerId: string): Promise<string[]> {
  const { Processes: rows } = (await docker.getContainer(containerId).top({ ps_args: '-eo pid,args' })) as {
    Processes: string[][]
  }
  return rows.map(row => row[1] ?? '')
}

/**
 * An image with nothing but these programs of this machine and the libraries that they load, each under the path that it is
 * given. It goes with the installation.
 */
export async function bareImage(
  { docker, instanceId }: Pick<Lab, 'docker' | 'instanceId'>,
  programs: Readonly<Record<string, string>>,
  command: readonly string[]
): Promise<string> {
  const root = await mkdtemp(join(tmpdir(), 'busbar-bare-'))
  const copy = async (from: string, to: string): Promise<void> => {
    await mkdir(join(root, dirname(to)), { recursive: true })
    await copyFile(from, join(root, to))
    await chmod(join(root, to), 0o755)
  }
  try {
    for (const [path, program] of Object.entries(programs)) {
      await copy(program, path)
      const { stdout } = await run('ldd', [program]).catch(() => ({ stdout: '' }))
      for (const [, library = ''] of stdout.matchAll(/(\/\S+) \(0x/g)) await copy(library, library)
    }
    await mkdir(join(root, 'proc'), { recursive: true })
    const repository = basename(root).toLowerCase()
    const tar = spawn('tar', ['-c', '-C', root, '.'])
    const answer = (await docker.importImage(
      tar.stdout as never,
      {
        repo: repository,
        tag: 'test',
        changes: [
          `CMD ${JSON.stringify(command)}`,
          'ENV PATH=/bin',
          `LABEL ${imageInstanceLabel}=${instanceId}`
        ]
      } as never
    )) as unknown as AsyncIterable<unknown>
    for await (const _ of answer);
    return `${repository}:test`
  } finally {
    await rm(root, { recursive: true, force: true })
  }
}
