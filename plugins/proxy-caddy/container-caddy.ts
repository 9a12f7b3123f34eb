import { rm, writeFile } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import type { ContainerRuntime } from 'busbar/api/containers'
import type { ImageService } from 'busbar/api/images'
import type { Clock } from 'busbar/sdk'
import { type AdminClient, Refused } from './admin-client.js'
import { type Caddy, CaddyFault } from './caddy.js'
import type { Json, JsonObject } from './config/json.js'
import { portRefusal } from './own-caddy.js'
import { ownershipOf } from './ownership.js'
import { portFault } from './port-check.js'
import { hasRival } from './rival.js'

const startLimitMs = 20_000
const lookMs = 50
const factsMs = 60_000
/** Far more than thousands of hostnames and connections take. */
const memoryLimit = 2 * 2 ** 30
const processes = 1024

interface ContainerCaddyParts {
  /** Undefined while no plugin runs containers. */
  readonly runtime: { get(): ContainerRuntime | undefined }
  readonly images: { get(): ImageService | undefined }
  readonly clock: Pick<Clock, 'elapsed' | 'sleep'>
  readonly client: AdminClient
  readonly image: string
  /** Of the container: there is one for an installation. */
  readonly name: string
  readonly socket: string
  /** Everything that it keeps, at the same path as here. */
  readonly directory: string
  /** A file that it has to read besides. */
  readonly rootFile: string | undefined
  readonly mark: string
  readonly bind: string
  readonly httpPort: number
  readonly httpsPort: number
  readonly answerer: { readonly host: string; readonly port: number }
}

/**
 * A Caddy that the platform runs in a container, in the network of the machine itself: so visitors keep their addresses, and neither
 * its admin API, a socket in the platform's folder, nor the name server is reached by any other container. What it keeps is in that
 * folder too, as of a Caddy that is no container. One that an earlier process of the platform has left behind is taken over.
 */
export class ContainerCaddy implements Caddy {
  readonly client: AdminClient
  readonly validate = undefined
  #said: readonly string[] = []

  constructor(private readonly parts: ContainerCaddyParts) {
    this.client = parts.client
  }

  async fault(): Promise<string | null> {
    const { mark, answerer, name } = this.parts
    const loaded = await this.#loaded()
    if (loaded === undefined) return await this.#startFault()
    if (await hasRival(loaded, answerer)) return 'another process of this installation drives it'
    return ownershipOf(loaded, mark) === 'foreign'
      ? `the Caddy in the container ${name} has a configuration of somebody else`
      : null
  }

  async adminBlock(): Promise<Json> {
    // Nothing of it is kept on disk: it holds keys.
    return { listen: `unix/${this.parts.socket}`, config: { persist: false } }
  }

  async serve(config: JsonObject): Promise<void> {
    if ((await this.#loaded()) === undefined) await this.#start()
    await this.client.load(config).catch(error => {
      throw error instanceof Refused ? portRefusal(error, this.parts) : error
    })
  }

  async restart(config: JsonObject): Promise<void> {
    await this.end()
    await this.serve(config)
  }

  async end(): Promise<void> {
    await this.client.stop().catch(() => {})
    const { runtime, name } = this.parts
    await this.#hear()
    await runtime
      .get()
      ?.remove(name)
      .catch(() => {})
  }

  said(): readonly string[] {
    return this.#said
  }

  async #loaded(): Promise<unknown> {
    return await this.client.config().catch(() => undefined)
  }

  async #startFault(): Promise<string | null> {
    const { runtime, images, image } = this.parts
    const engine = runtime.get()
    if (engine === undefined)
      return 'no plugin runs containers: enable "runtime-docker", or install the program caddy'
    const { place } = await engine.info({ maxAgeMs: factsMs })
    if (place !== 'here')
      return `${place === 'around' ? 'the platform runs in a container itself' : 'the Docker Engine is on another machine'}: run Caddy where it can reach the platform, and set CADDY_ADMIN_URL`
    if ((await images.get()?.image(image)) === undefined)
      return `the image ${image} of BUSBAR_CADDY_IMAGE is not on the Docker Engine: docker pull ${image}`
    return await portFault(this.parts)
  }

  async #start(): Promise<void> {
    const fault = await this.#startFault()
    const engine = this.parts.runtime.get()
    if (fault !== null || engine === undefined) throw new CaddyFault(fault ?? 'no plugin runs containers')
    const { name, socket } = this.parts
    await engine.remove(name)
    // What a killed one has left is in the way of the next.
    await rm(socket, { force: true })
    await this.#create(engine)
    await engine.start(name)
    await this.#untilItAnswers(engine)
  }

  async #create(engine: ContainerRuntime): Promise<void> {
    const { name, image, socket, directory, rootFile } = this.parts
    // It says only where Caddy is asked; all else is loaded, and in no file.
    const begin = join(directory, 'begin.json')
    await writeFile(begin, JSON.stringify({ admin: await this.adminBlock() }), { mode: 0o600 })
    await engine.create({
      name,
      image,
      owner: {},
      network: 'host',
      onMachine: {
        user: { uid: process.getuid?.() ?? 0, gid: process.getgid?.() ?? 0 },
        folders: [
          ...[...new Set([directory, dirname(socket)])].map(path => ({ path })),
          ...(rootFile === undefined ? [] : [{ path: rootFile, readOnly: true }])
        ]
      },
      env: { HOME: directory, XDG_DATA_HOME: directory, XDG_CONFIG_HOME: directory },
      entrypoint: ['caddy', 'run', '--config', begin],
      cpuLimit: 0,
      memoryLimit,
      processes,
      caps: 'minimal',
      readonlyRootfs: true,
      // Alone it would serve nothing: it is given its configuration by this process, which starts it as well.
      restarts: false
    })
  }

  async #untilItAnswers(engine: ContainerRuntime): Promise<void> {
    const { clock, name } = this.parts
    const until = clock.elapsed() + startLimitMs
    while ((await this.#loaded()) === undefined) {
      const state = await engine.inspect(name)
      const isOver = state === undefined || (state.status !== 'running' && state.status !== 'created')
      if (isOver || clock.elapsed() > until) {
        await this.#hear()
        await engine.remove(name).catch(() => {})
        throw new Refused(
          this.#said.findLast(line => /^(?:run|Error): /.test(line))?.slice(0, 1000) ??
            this.#said.at(-1)?.slice(0, 1000) ??
            `the container ${name} did not answer within ${startLimitMs / 1000} s`
        )
      }
      await clock.sleep(lookMs)
    }
  }

  async #hear(): Promise<void> {
    const lines = await this.parts.runtime
      .get()
      ?.tail(this.parts.name, 200)
      .catch(() => undefined)
    if (lines !== undefined && lines.length > 0) this.#said = lines
  }
}
