import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { openSync, readFileSync } from 'node:fs'
import { chmod, mkdtemp, rm } from 'node:fs/promises'
import { type AddressInfo, createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'

/** A platform to show: one that was started for it, or one that runs already. */
export interface Platform {
  readonly url: string
  /** A folder for the demo's own files. */
  readonly directory: string
  /** Ends what was started and removes the folder. */
  close(): Promise<void>
}

const startLimitMs = 60_000

/** The platform at BUSBAR_URL, or a fresh one on a free port with its data in a temporary folder. */
export async function openPlatform(): Promise<Platform> {
  const directory = await mkdtemp(join(tmpdir(), 'busbar-demo-'))
  // an embedded PostgreSQL that was started by root runs as another user and must get at its data
  await chmod(directory, 0o711)
  const remove = async () => await rm(directory, { recursive: true, force: true })
  const running = process.env.BUSBAR_URL
  if (running !== undefined && running !== '')
    return { url: running.replace(/\/$/, ''), directory, close: remove }
  try {
    const { url, stop } = await startPlatform(directory)
    return {
      url,
      directory,
      close: async () => {
        await stop()
        await remove()
      }
    }
  } catch (error) {
    await remove()
    throw error
  }
}

async function startPlatform(directory: string): Promise<{ url: string; stop: () => Promise<void> }> {
  const port = await freePort()
  const url = `http://127.0.0.1:${port}`
  const logFile = join(directory, 'platform.log')
  const log = openSync(logFile, 'a')
  const child = spawn(process.execPath, [fileURLToPath(new URL('../../core/main.js', import.meta.url))], {
    env: {
      ...process.env,
      HOST: '127.0.0.1',
      PORT: String(port),
      BUSBAR_DIR: join(directory, 'data'),
      DATABASE_URL: '',
      // A demo begins at once, without a download.
      BUILD_ENGINE: process.env.BUILD_ENGINE ?? 'classic'
    },
    stdio: ['ignore', log, log]
  })
  const stop = async (): Promise<void> => {
    if (child.exitCode !== null || child.signalCode !== null) return
    child.kill('SIGTERM')
    await once(child, 'exit')
  }
  const until = performance.now() + startLimitMs
  while (!(await answers(url))) {
    if (child.exitCode !== null || performance.now() > until) {
      await stop()
      throw new Error(
        `the platform did not start; its last words:\n${readFileSync(logFile, 'utf8').split('\n').slice(-30).join('\n')}`
      )
    }
    await sleep(50)
  }
  return { url, stop }
}

const answers = async (url: string): Promise<boolean> =>
  await fetch(`${url}/healthz`).then(
    response => response.ok,
    () => false
  )

async function freePort(): Promise<number> {
  const server = createServer().listen(0, '127.0.0.1')
  await once(server, 'listening')
  const { port } = server.address() as AddressInfo
  server.close()
  await once(server, 'close')
  return port
}
