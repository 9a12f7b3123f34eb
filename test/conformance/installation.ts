import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { removeInstallation } from '../../lab/installation.js'
import { ProgramLines } from '../../lab/program-lines.js'
import { startFlags } from '../../lab/start-flags.js'
import { claimPortRange } from '../../sdk/testing/port-range.js'
import { createDatabase } from '../cluster/database.js'

/** Of a page that may open sockets. */
export const listedOrigin = 'https://ui.example.com'

/** Without one the first user cannot be made from elsewhere. */
export const setupCode = 'conformance-setup-code'

const root = join(import.meta.dirname, '../..')
const startLimitMs = 120_000

/** A process of the platform. */
interface PlatformProcess {
  readonly url: string
  readonly pid: number
  stop(): Promise<void>
}

/** What an operator has after the start: nobody has signed in yet. */
export interface Installation {
  readonly processes: readonly PlatformProcess[]
  readonly databaseUrl: string
  close(): Promise<void>
}

export interface InstallationOptions {
  /** Of one installation, on one database; all but the first serve requests only. */
  readonly processes?: number
  /** Whether it may use the engine of the machine. */
  readonly usesEngine?: boolean
  readonly environment?: Readonly<Record<string, string>>
  /** The database of somebody else, who may restart it. */
  readonly databaseUrl?: string
  /** By which way each process reaches the database that has this address: the address that it is told. */
  readonly wayOf?: (process: number, databaseUrl: string) => Promise<string>
}

/** Starts the platform as its operator does: by the program of `npm start` in processes of its own, told by environment variables alone. */
export async function startInstallation({
  processes = 1,
  usesEngine = false,
  environment = {},
  databaseUrl,
  wayOf = async (_, url) => url
}: InstallationOptions = {}): Promise<Installation> {
  const directory = await mkdtemp(join(tmpdir(), 'busbar-conformance-'))
  const database =
    databaseUrl === undefined ? await createDatabase() : { url: databaseUrl, drop: async () => {} }
  const started: PlatformProcess[] = []
  const close = async (): Promise<void> => {
    for (const one of started) await one.stop()
    if (usesEngine) await removeInstallation({ directory })
    await database.drop()
    await rm(directory, { recursive: true, force: true })
  }
  try {
    for (let n = 0; n < processes; n++)
      started.push(
        await startProcess({
          BUSBAR_DIR: directory,
          DATABASE_URL: await wayOf(n, database.url),
          BUSBAR_ROLE: n === 0 ? 'all' : 'api',
          ...(usesEngine
            ? { BUSBAR_DIRECT_PORTS: await claimPortRange(), ...engineOf(process.env) }
            : { DOCKER_HOST: `unix://${join(directory, 'no-engine')}` }),
          BUSBAR_PLUGINS: join(import.meta.dirname, 'plugins'),
          ...environment
        })
      )
  } catch (error) {
    await close()
    throw error
  }
  return { processes: started, databaseUrl: database.url, close }
}

async function startProcess(environment: Readonly<Record<string, string>>): Promise<PlatformProcess> {
  const child = spawn(process.execPath, [...startFlags, join(root, 'scripts/start.mjs')], {
    cwd: root,
    env: {
      PATH: process.env.PATH,
      HOME: process.env.HOME,
      ...(process.env.BUSBAR_SUBNETS !== undefined && { BUSBAR_SUBNETS: process.env.BUSBAR_SUBNETS }),
      HOST: '127.0.0.1',
      PORT: '0',
      // Any free port: installations run side by side.
      BUSBAR_PROXY_PORT: '0',
      BUSBAR_CADDY_PROGRAM: 'none',
      LOG_FORMAT: 'json',
      BUILD_ENGINE: 'classic',
      // Who signs in comes from an address of their own, as a proxy tells it.
      TRUST_PROXY: '127.0.0.1',
      SETUP_CODE: setupCode,
      CORS_ORIGINS: listedOrigin,
      ...environment
    },
    stdio: ['ignore', 'pipe', 'inherit']
  })
  const exited = once(child, 'exit')
  const lines = new ProgramLines(child.stdout, 'the platform')
  try {
    const line = await lines.next('where it serves', said => /serves http:/.test(said), startLimitMs)
    const url = /serves (http:\/\/[^ ]+) after/.exec(line)?.[1]
    if (url === undefined) throw new Error(`the platform said: ${line}`)
    return {
      url,
      pid: child.pid ?? 0,
      async stop() {
        if (child.exitCode === null && child.signalCode === null) child.kill('SIGTERM')
        await exited
      }
    }
  } catch (error) {
    child.kill('SIGKILL')
    await exited
    throw error
  }
}

const engineOf = ({ DOCKER_HOST: host }: NodeJS.ProcessEnv): Readonly<Record<string, string>> =>
  host === undefined ? {} : { DOCKER_HOST: host }
