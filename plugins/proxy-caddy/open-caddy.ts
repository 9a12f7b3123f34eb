import { createHash } from 'node:crypto'
import { mkdir, readFile, stat, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { ContainerRuntime } from 'busbar/api/containers'
import type { ImageService } from 'busbar/api/images'
import type { Clock, Exec, Instance, Log } from 'busbar/sdk'
import { openAccessResponder } from './access-responder.js'
import { AdminClient } from './admin-client.js'
import type { Caddy } from './caddy.js'
import { CaddyDriver, type GivenOptions } from './caddy-driver.js'
import { CaddyProcess, findProgram } from './caddy-process.js'
import type { CaddyOptions } from './config/caddy-options.js'
import { accessLogName, ownLogName } from './config/logging.js'
import { markOf } from './config/marks.js'
import { ContainerCaddy } from './container-caddy.js'
import { openAnswerer } from './dns/answerer.js'
import { Zone } from './dns/zone.js'
import { installationId } from './installation-id.js'
import { TlsLog } from './log/tls-log.js'
import { OutsideCaddy } from './outside-caddy.js'
import { OwnCaddy } from './own-caddy.js'
import type { Settings } from './settings.js'
import { openStoppedResponder } from './stopped-responder.js'

interface OpenParts {
  readonly settings: Settings
  readonly exec: Exec
  readonly clock: Clock
  readonly instance: Pick<Instance, 'directory' | 'ownProxy'>
  readonly log: Log
  /** By which Caddy runs in a container. */
  readonly containers: {
    readonly runtime: { get(): ContainerRuntime | undefined }
    readonly images: { get(): ImageService | undefined }
  }
}

export interface RunningCaddy {
  readonly driver: CaddyDriver
  /** The file of requests; null where there is none. */
  readonly accessLog: string | null
  close(): Promise<void>
}

/** Files with the ports that are asked by Caddy. */
const answererPort = 'answerer-port'
const accessPort = 'access-port'
/** The path of a socket has 108 bytes. */
const longestSocket = 100

/** Undefined where there is no Caddy, and none is asked for by a setting. */
export async function openCaddy(parts: OpenParts): Promise<RunningCaddy | undefined> {
  const { settings, exec, clock, instance, log, containers } = parts
  const searchPath = settings.search_path ?? ''
  const isOwn = settings.admin_url === undefined
  const isMissing =
    settings.program === 'none' ||
    (settings.program === 'caddy' && (await findProgram('caddy', searchPath)) === undefined)
  if (isOwn && isMissing && settings.image === undefined) return undefined
  const directory = await instance.directory()
  const installation = await installationId(directory)
  const responder = await openStoppedResponder(settings.dns_host)
  const zone = new Zone(responder, () => clock.elapsed())
  const answerer = await openAnswerer({
    host: settings.dns_host,
    port: await formerPort(directory, answererPort),
    zone,
    log
  })
  const access = await openAccessResponder({
    host: settings.dns_host,
    port: await formerPort(directory, accessPort),
    clock,
    instance
  })
  await writeFile(join(directory, answererPort), `${answerer.port}\n`)
  await writeFile(join(directory, accessPort), `${access.port}\n`)
  const bind = settings.bind ?? ''
  const logDirectory = isOwn ? join(directory, 'logs') : (settings.log_directory ?? null)
  if (isOwn) await mkdir(join(directory, 'logs'), { recursive: true, mode: 0o700 })
  const common = {
    mark: markOf(installation),
    bind,
    httpPort: settings.http_port,
    httpsPort: settings.https_port
  }
  const options: GivenOptions = {
    ...common,
    resolver: { host: answerer.host, port: answerer.port },
    responder: { host: access.host, port: access.port },
    graceSeconds: settings.grace_seconds,
    storage: isOwn ? join(directory, 'storage') : null,
    logDirectory,
    accessLog: settings.access_log,
    issuer: issuerOf(settings),
    ownProxy: instance.ownProxy
  }
  let driver: CaddyDriver | undefined
  let caddy: Caddy
  if (settings.admin_url === undefined) {
    const socket = await socketIn(directory)
    const client = new AdminClient({ kind: 'unix', path: socket })
    const { program, image, acme_root_file: rootFile } = settings
    const name = `busbar-caddy-${installation.slice(0, 8)}`
    const child = new CaddyProcess(program, { exec, clock, log, client, directory })
    const onEnd = (): void => driver?.ended()
    const own = { ...common, client, socket, directory, answerer }
    caddy =
      image !== undefined && isMissing
        ? new ContainerCaddy({ ...own, ...containers, clock, image, name, rootFile })
        : new OwnCaddy({ ...own, exec, process: child, program, searchPath, onEnd })
  } else caddy = new OutsideCaddy({ ...common, client: new AdminClient(settings.admin_url), answerer })
  const tlsLog = logDirectory === null ? null : new TlsLog(join(logDirectory, ownLogName))
  driver = new CaddyDriver({ caddy, zone, clock, log, options, tlsLog, reachedAt: reachedAt(bind) })
  const opened = driver
  await opened.open()
  return {
    driver: opened,
    accessLog: logDirectory === null || !settings.access_log ? null : join(logDirectory, accessLogName),
    close: async () => {
      await opened.close()
      await Promise.all([answerer.close(), responder.close(), access.close(), tlsLog?.close()])
    }
  }
}

const reachedAt = (bind: string): string =>
  bind === '' || bind === '0.0.0.0' ? '127.0.0.1' : bind === '::' ? '::1' : bind

function issuerOf(settings: Settings): CaddyOptions['issuer'] {
  if (settings.issuer === 'internal') return { kind: 'internal' }
  const { acme_directory: directory, acme_email: email, acme_root_file: rootFile } = settings
  return { kind: 'acme', directory, email, rootFile }
}

/** In the folder of the plugin, which nobody else can enter; where that has too long a name, in one of its own that is the same each time. */
async function socketIn(directory: string): Promise<string> {
  const socket = join(directory, 'admin.sock')
  if (Buffer.byteLength(socket) <= longestSocket) return socket
  const folder = join(
    tmpdir(),
    `busbar-caddy-${createHash('sha256').update(directory).digest('hex').slice(0, 16)}`
  )
  await mkdir(folder, { recursive: true, mode: 0o700 })
  const { uid, mode } = await stat(folder)
  // Others can make folders there, too.
  if (uid !== process.getuid?.() || (mode & 0o077) !== 0)
    throw new Error(`${folder} is not this user's alone: remove it`)
  return join(folder, 'admin.sock')
}

/** By the same port as before, what a Caddy that runs on has loaded stays right. 0 where none is known. */
async function formerPort(directory: string, name: string): Promise<number> {
  const text = await readFile(join(directory, name), 'utf8').catch(() => '')
  return /^\d{1,5}\n?$/.test(text) && Number(text) <= 65_535 ? Number(text) : 0
}
