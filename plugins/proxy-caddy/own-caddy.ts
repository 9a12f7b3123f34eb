import { rm } from 'node:fs/promises'
import type { Exec } from 'busbar/sdk'
import { type AdminClient, Refused } from './admin-client.js'
import { type Caddy, CaddyFault } from './caddy.js'
import { type CaddyProcess, findProgram } from './caddy-process.js'
import type { Json, JsonObject } from './config/json.js'
import { ownershipOf } from './ownership.js'
import { portFault } from './port-check.js'
import { hasRival } from './rival.js'

const validateLimitMs = 10_000

interface OwnCaddyParts {
  readonly exec: Exec
  readonly client: AdminClient
  readonly process: CaddyProcess
  /** What of the settings and of this process counts. */
  readonly program: string
  readonly searchPath: string
  readonly socket: string
  readonly directory: string
  readonly mark: string
  readonly bind: string
  readonly httpPort: number
  readonly httpsPort: number
  readonly answerer: { readonly host: string; readonly port: number }
  /** It has ended by itself. */
  readonly onEnd: () => void
}

/**
 * A Caddy that the platform runs, with its admin API on a socket in a folder of the platform's. One that an earlier process of the
 * platform, killed, has left behind goes on serving and is taken over.
 */
export class OwnCaddy implements Caddy {
  readonly client: AdminClient
  #program = ''

  constructor(private readonly parts: OwnCaddyParts) {
    this.client = parts.client
  }

  async fault(): Promise<string | null> {
    const { program, searchPath } = this.parts
    const found = await findProgram(program, searchPath)
    if (found === undefined)
      return `the program ${program} is not there: install Caddy, or set BUSBAR_CADDY_PROGRAM`
    this.#program = found
    if (this.parts.process.isRunning) return null
    const left = await this.#leftBehind()
    if (left === undefined) return await portFault(this.parts)
    if (await hasRival(left, this.parts.answerer)) return 'another process of this installation drives it'
    return ownershipOf(left, this.parts.mark) === 'foreign'
      ? `the Caddy behind ${this.parts.socket} has a configuration of somebody else`
      : null
  }

  async adminBlock(): Promise<Json> {
    // Nothing of it is kept on disk: it holds keys.
    return { listen: `unix/${this.parts.socket}`, config: { persist: false } }
  }

  async serve(config: JsonObject): Promise<void> {
    const { process } = this.parts
    if (process.isRunning || (await this.#leftBehind()) !== undefined) await this.client.load(config)
    else await this.#start(config)
  }

  readonly validate = async (config: JsonObject): Promise<string | null> => {
    const { exec, directory } = this.parts
    const { exitCode, stderr } = await exec.run([this.#program, 'validate', '--config', '-'], {
      cwd: directory,
      env: { HOME: directory, XDG_DATA_HOME: directory, XDG_CONFIG_HOME: directory },
      input: JSON.stringify(config),
      timeoutMs: validateLimitMs,
      maxOutputBytes: 64 * 1024
    })
    if (exitCode === 0) return null
    const said =
      stderr
        .trim()
        .split('\n')
        .findLast(line => !line.startsWith('{')) ?? 'it is not valid'
    return said.replace(/^(?:validate|Error): /, '').slice(0, 1000)
  }

  async restart(config: JsonObject): Promise<void> {
    await this.end()
    await this.#start(config)
  }

  async end(): Promise<void> {
    const { process } = this.parts
    if (process.isRunning) await process.stop()
    else if ((await this.#leftBehind()) !== undefined) await this.client.stop().catch(() => {})
  }

  said(): readonly string[] {
    return this.parts.process.said()
  }

  async #start(config: JsonObject): Promise<void> {
    const fault = (await portFault(this.parts)) ?? (this.#program === '' ? await this.fault() : null)
    if (fault !== null) throw new CaddyFault(fault)
    // What a killed one has left is in the way of the next.
    await rm(this.parts.socket, { force: true })
    await this.parts.process.start(config, this.parts.onEnd).catch(error => {
      throw error instanceof Refused ? portRefusal(error, this.parts) : error
    })
  }

  /** The configuration of a Caddy that answers although this process runs none. */
  async #leftBehind(): Promise<unknown> {
    if (this.parts.process.isRunning) return undefined
    return await this.client.config().catch(() => undefined)
  }
}

/** Caddy names the call of the system that failed; an operator needs to know which setting helps. */
export function portRefusal(
  error: Refused,
  { httpPort, httpsPort }: { readonly httpPort: number; readonly httpsPort: number }
): Error {
  if (/trusted root CA/.test(error.message))
    return new CaddyFault(`Caddy cannot read ACME_ROOT_FILE: ${error.message.slice(0, 300)}`)
  if (!/listen(?:ing on)? /.test(error.message) || !/bind:|cannot assign|listen tcp/.test(error.message))
    return error
  return new CaddyFault(
    /permission denied/.test(error.message)
      ? `Caddy may not listen on the ports ${httpPort} and ${httpsPort}: run \`setcap cap_net_bind_service=+ep\` on its program, or set BUSBAR_HTTP_PORT and BUSBAR_HTTPS_PORT to ports above 1023`
      : `Caddy cannot listen on the ports ${httpPort} and ${httpsPort} (${error.message.slice(0, 300)}): set BUSBAR_HTTP_PORT, BUSBAR_HTTPS_PORT or BUSBAR_CADDY_BIND`
  )
}
