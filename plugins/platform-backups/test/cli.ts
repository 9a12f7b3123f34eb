import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { join } from 'node:path'

const root = join(import.meta.dirname, '../../..')
const runtime = [`--import=${join(root, 'scripts/test-loader.mjs')}`, '--conditions=busbar-source']

interface Said {
  readonly code: number | null
  readonly stdout: string
  readonly stderr: string
}

interface Options {
  readonly directory: string
  /** Left out: the embedded server. */
  readonly databaseUrl?: string
  readonly environment?: Readonly<Record<string, string>>
  readonly input?: string
}

const environmentOf = ({ directory, databaseUrl, environment = {} }: Options): NodeJS.ProcessEnv => ({
  PATH: process.env.PATH,
  HOME: process.env.HOME,
  BUSBAR_DIR: directory,
  ...(databaseUrl === undefined ? {} : { DATABASE_URL: databaseUrl }),
  ...environment
})

/** Begins `busbar …`, as an operator does. */
export const beginBusbar = (args: readonly string[], options: Options): ChildProcess =>
  spawn(process.execPath, [...runtime, join(root, 'scripts/busbar.ts'), ...args], {
    cwd: root,
    env: environmentOf(options),
    stdio: ['ignore', 'pipe', 'pipe']
  })

/** Begins a platform of its own, as `npm start` does. */
export const beginPlatform = (options: Options): ChildProcess =>
  spawn(process.execPath, [...runtime, join(root, 'core/main.ts')], {
    cwd: root,
    env: {
      ...environmentOf(options),
      PORT: '0',
      LOG_FORMAT: 'json',
      BUSBAR_PROXY_PORT: '0',
      BUSBAR_CADDY_PROGRAM: 'none',
      BUILD_ENGINE: 'classic'
    },
    stdio: ['ignore', 'pipe', 'pipe']
  })

export async function ended(child: ChildProcess): Promise<Said> {
  const [out, err]: [string[], string[]] = [[], []]
  child.stdout?.setEncoding('utf8').on('data', (text: string) => out.push(text))
  child.stderr?.setEncoding('utf8').on('data', (text: string) => err.push(text))
  const [code] = (await once(child, 'close')) as [number | null]
  return { code, stdout: out.join(''), stderr: err.join('') }
}

export const busbar = async (args: readonly string[], options: Options): Promise<Said> =>
  await ended(beginBusbar(args, options))
