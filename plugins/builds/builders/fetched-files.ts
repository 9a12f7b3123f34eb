import { mkdir } from 'node:fs/promises'
import { join } from 'node:path'
import { Readable } from 'node:stream'
import { isProblem, Problem } from 'busbar/sdk'
import { pack } from 'tar-fs'
import type { BuildContext } from '../api.js'
import { contextDockerfile } from '../context/build-context.js'
import { canExpand } from '../dockerfile/instruction.js'
import type { RemoteAdd } from '../dockerfile/remote-files.js'
import type { HostRules } from '../network/host-resolution.js'
import { fetchRemoteFile, shownAddress } from '../network/remote-file.js'
import { problems } from '../problems.js'

/** Where fetched files may come from, and how large they may be together. */
export interface FetchRules {
  readonly hosts: HostRules
  readonly maxBytes: number
}

const timeoutMs = 15 * 60_000

/** The folder of the build context in which they lie. */
export const filesFolder = 'files'

/** As the classic builder calls what has no name. */
const unnamed = '__unnamed__'
const longestName = 255

interface Fetched {
  /** The folder in which it lies alone. */
  readonly folder: string
  /** Null when neither address nor answer tells one. */
  readonly name: string | null
}

/** What the ADDs of a build name by address, fetched once under the host rules, as a build context of its own. */
export class FetchedFiles {
  readonly #fetched = new Map<string, Fetched>()
  #bytes = 0

  /** `directory` is made for them; `dockerfile` is what the author calls the Dockerfile. */
  constructor(
    private readonly rules: FetchRules,
    private readonly directory: string,
    private readonly dockerfile: string
  ) {}

  /** Errors say the line of the ADD. */
  async fetch({ instruction, addresses }: RemoteAdd, context: BuildContext): Promise<void> {
    try {
      for (const address of addresses) {
        const { name } = this.#fetched.get(address) ?? (await this.#fetch(address, context))
        const { destination } = instruction
        // The engine puts a file into a folder by its name.
        if (name === null && (/(?:^|\/)\.{0,2}$/.test(destination) || canExpand(destination)))
          throw problems.remoteFileUnnamed({
            url: shownAddress(address),
            destination: destination.slice(0, 200)
          })
      }
    } catch (error) {
      if (!isProblem(error)) throw error
      throw new Problem(
        error.status,
        error.code,
        `line ${instruction.line} of the Dockerfile ${this.dockerfile}: ${error.message}`
      )
    }
  }

  /** Where a COPY finds what was fetched from an address; a pattern that nothing else matches, whatever its name holds. */
  sourceOf(address: string): string {
    return `/${this.#fetched.get(address)?.folder ?? ''}/*`
  }

  /** Each is as the classic builder would make it: of root, for its owner alone, and as old as its host says. */
  context(dockerfile: string): Readable {
    const names = new Map([...this.#fetched.values()].map(({ folder, name }) => [folder, name ?? unnamed]))
    const tar = pack(this.directory, {
      ignore: path => path === this.directory,
      map: header => ({
        ...header,
        name: `${filesFolder}/${header.name}/${names.get(header.name) ?? unnamed}`,
        mode: 0o600,
        uid: 0,
        gid: 0
      }),
      finalize: false,
      finish: () => {
        tar.entry({ name: contextDockerfile, mode: 0o644 }, dockerfile, () => tar.finalize())
      }
    })
    return Readable.from(tar)
  }

  async #fetch(address: string, { log, signal }: BuildContext): Promise<Fetched> {
    const url = shownAddress(address)
    log({ level: 'info', msg: `Fetching ${url}` })
    await mkdir(this.directory, { recursive: true })
    const folder = String(this.#fetched.size)
    const { name, bytes } = await fetchRemoteFile(address, join(this.directory, folder), this.rules.hosts, {
      maxBytes: this.rules.maxBytes - this.#bytes,
      timeoutMs,
      signal
    }).catch((error: unknown) => {
      if (!isProblem(error) || error.code !== 'E_REMOTE_FILE_SIZE') throw error
      throw problems.remoteFilesTooLarge({ limit: Math.round(this.rules.maxBytes / 2 ** 20) })
    })
    // A layer says by .wh. that a file is gone.
    if (name !== null && (Buffer.byteLength(name) > longestName || name.startsWith('.wh.')))
      throw problems.remoteFileName({ url, name: JSON.stringify(name.slice(0, 60)) })
    log({ level: 'info', msg: `Fetched ${sizeOf(bytes)}` })
    this.#bytes += bytes
    const fetched = { folder, name }
    this.#fetched.set(address, fetched)
    return fetched
  }
}

const sizeOf = (bytes: number): string =>
  bytes < 2 ** 20 ? `${Math.ceil(bytes / 1024)} KiB` : `${(bytes / 2 ** 20).toFixed(1)} MiB`
