import { randomBytes } from 'node:crypto'
import { open } from 'node:fs/promises'
import { join } from 'node:path'
import { TestClient } from 'busbar/sdk/testing'
import { startEnvironment, startFlags } from '../../lab/start-flags.js'
import { Child } from './child.js'
import { expect } from './expect.js'
import { removeFolder, temporaryFolder } from './leftovers.js'
import type { PlatformCommands, PlatformReady, Variant } from './platform-server.js'
import { createTokens, mostTokens, type TokenPool } from './tokens.js'

type PlatformProcess = Child<PlatformReady, PlatformCommands>

const account = { password: 'correct horse battery', instance_name: 'Bench' }

/** A platform with a PostgreSQL of its own, set up through its API. */
export interface Platform {
  readonly process: PlatformProcess
  readonly url: string
  /** Where it keeps its data. */
  readonly directory: string
  /** The session of an administrator who has spent nothing of the budget. */
  readonly admin: TestClient
  readonly projectId: string
  readonly projectSlug: string
  readonly tokens: TokenPool
  close(): Promise<void>
}

/**
 * Starts the platform as it is run for real: log lines as JSON to a file, limits as they are. All admins but the first lend
 * their tokens. Without `databaseUrl` it runs PostgreSQL itself.
 */
export async function openPlatform({
  admins = 5,
  tokensEach = mostTokens,
  databaseUrl = '',
  environment = {}
}: {
  readonly admins?: number
  readonly tokensEach?: number
  readonly databaseUrl?: string
  readonly environment?: Readonly<Record<string, string>>
} = {}): Promise<Platform> {
  const directory = await temporaryFolder()
  const process = await startPlatform('folders', join(directory, 'platform.log'), {
    BUSBAR_DIR: join(directory, 'data'),
    DATABASE_URL: databaseUrl,
    ...environment
  })
  const close = async (): Promise<void> => {
    await process.stop()
    await removeFolder(directory)
  }
  try {
    const url = `http://127.0.0.1:${process.ready.port}`
    const slug = `bench-${randomBytes(3).toString('hex')}`
    const [admin, ...others] = await signInAdmins(url, admins)
    if (admin === undefined) throw new Error('there is no administrator')
    const { id } = expect(await admin.post('/api/projects', { name: 'Shop', slug }), 201) as { id: string }
    return {
      process,
      url,
      directory: join(directory, 'data'),
      admin,
      projectId: id,
      projectSlug: slug,
      tokens: await createTokens(others, tokensEach),
      close
    }
  } catch (error) {
    await close()
    throw error
  }
}

/** The same installation after a restart; what was opened before is not to be closed any more. */
export async function restarted(platform: Platform): Promise<Platform> {
  await platform.process.stop()
  const process = await startPlatform('folders', join(platform.directory, '../platform.log'), {
    BUSBAR_DIR: platform.directory,
    DATABASE_URL: platform.process.ready.databaseUrl
  })
  const url = `http://127.0.0.1:${process.ready.port}`
  return {
    ...platform,
    process,
    url,
    admin: new TestClient(url, platform.admin.credential),
    async close() {
      await process.stop()
      await platform.close()
    }
  }
}

/** A process that is the platform and answers questions about itself. */
export async function startPlatform(
  variant: Variant,
  logFile: string,
  environment: Readonly<Record<string, string>>
): Promise<PlatformProcess> {
  const log = await open(logFile, 'a')
  try {
    return await Child.start(new URL('./platform-server.js', import.meta.url), {
      args: [variant],
      execArgv: ['--expose-gc', ...startFlags],
      output: log.fd,
      environment: { ...startEnvironment, ...quietly, ...environment }
    })
  } finally {
    await log.close()
  }
}

/** The settings of a platform under measurement, whatever the environment of the benchmark says. */
export const quietly = {
  HOST: '127.0.0.1',
  PORT: '0',
  LOG_FORMAT: 'json',
  LOG_LEVEL: 'info',
  BUSBAR_ROLE: 'all',
  BUSBAR_PLUGINS: '',
  BUILD_ENGINE: 'classic',
  // One that the machine has is measured by itself.
  BUSBAR_CADDY_PROGRAM: 'none'
} as const

/** Several, because everybody has a budget of requests; no more than may sign in within a minute. */
async function signInAdmins(url: string, count: number): Promise<TestClient[]> {
  const anonymous = new TestClient(url)
  const admins: TestClient[] = []
  for (let n = 0; n < count; n++) {
    const email = `admin${n}@example.com`
    const user = { ...account, email, username: `admin${n}` }
    const [first] = admins
    if (first === undefined) expect(await anonymous.post('/api/auth/setup', user), 201)
    else
      expect(
        await first.post('/api/users', {
          email,
          username: user.username,
          password: user.password,
          role: 'admin'
        }),
        201
      )
    admins.push(await signIn(anonymous, email))
  }
  return admins
}

async function signIn(anonymous: TestClient, email: string): Promise<TestClient> {
  const answer = await anonymous.post('/api/auth/login', { email, password: account.password })
  expect(answer, 200)
  const cookies = (answer.headers['set-cookie'] ?? []).map(cookie => cookie.split(';')[0] ?? '')
  const csrf = cookies.find(cookie => cookie.startsWith('csrf_token='))?.slice('csrf_token='.length) ?? ''
  return new TestClient(anonymous.url, { cookie: cookies.join('; '), 'x-csrf-token': csrf })
}
