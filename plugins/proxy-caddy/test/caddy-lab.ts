import { randomUUID } from 'node:crypto'
import { mkdtemp, rm } from 'node:fs/promises'
import { createServer, type IncomingHttpHeaders, request as plainRequest } from 'node:http'
import { request } from 'node:https'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { TrafficTarget } from 'busbar/api/deployments'
import { settingsFrom } from 'busbar/sdk/testing'
import type { Test } from 'tap'
import { systemClock } from '../../../core/clock/clock.js'
import { createExec } from '../../../core/exec/exec.js'
import { createLog } from '../../../core/log/log.js'
import { createRedactor } from '../../../core/log/redactor.js'
import { freeTcpPorts } from '../../../lab/pebble.js'
import { openCaddy, type RunningCaddy } from '../open-caddy.js'
import { settings } from '../settings.js'

const log = createLog({ level: 'silent', format: 'json', redactor: createRedactor() })
const exec = createExec({ log })
const clock = systemClock()
export const ownProxy = { header: 'x-busbar-proxy', value: 'a-secret-of-the-installation' }

interface LabOptions {
  readonly environment?: Readonly<Record<string, string>>
  /** A folder that is kept; one of its own unless given. */
  readonly directory?: string
  /** Of HTTP and of HTTPS; free ones unless given. */
  readonly ports?: readonly [number, number]
  readonly containers?: Parameters<typeof openCaddy>[0]['containers']
}

interface CaddyLab extends RunningCaddy {
  readonly directory: string
  readonly http: number
  readonly https: number
}

const noContainers = { runtime: { get: () => undefined }, images: { get: () => undefined } }

/** A folder that goes with the test. */
export async function labDirectory(t: Test): Promise<string> {
  const directory = await mkdtemp(join(tmpdir(), 'busbar-caddy-test-'))
  t.teardown(() => rm(directory, { recursive: true, force: true, maxRetries: 5 }))
  return directory
}

/** The driver with a Caddy of its own on free ports of 127.0.0.1, unless the environment says otherwise; it ends with the test. */
export async function caddyLab(
  t: Test,
  { environment = {}, directory, ports, containers = noContainers }: LabOptions = {}
): Promise<CaddyLab> {
  const [http = 0, https = 0] = ports ?? (await freeTcpPorts(2))
  const folder = directory ?? (await labDirectory(t))
  const given = settingsFrom(settings, {
    PATH: process.env.PATH ?? '',
    BUSBAR_CADDY_BIND: '127.0.0.1',
    BUSBAR_HTTP_PORT: String(http),
    BUSBAR_HTTPS_PORT: String(https),
    BUSBAR_CADDY_GRACE_SECONDS: '1',
    ...environment
  })
  const instance = { directory: async () => folder, ownProxy }
  const running = await openCaddy({ settings: given, exec, clock, instance, log, containers })
  if (running === undefined) throw new Error('there is no Caddy here: apt-get install caddy')
  let isClosed = false
  const close = async (): Promise<void> => {
    if (isClosed) return
    isClosed = true
    await running.driver.release()
    await running.close()
  }
  t.teardown(close)
  return { ...running, directory: folder, http: given.http_port, https: given.https_port, close }
}

export interface Visited {
  readonly status: number
  readonly headers: IncomingHttpHeaders
  readonly text: string
}

interface VisitOptions {
  readonly hostname: string
  readonly path?: string
  readonly headers?: Record<string, string | string[]>
  readonly method?: string
  /** By which the certificate is trusted; over plain HTTP without it. */
  readonly ca?: string
}

/**
 * One request, on a connection of its own. As of a browser, a GET that a load has met on its way, and that has no answer, is sent
 * once more.
 */
export async function visit(port: number, options: VisitOptions): Promise<Visited> {
  return await visitOnce(port, options).catch(async (error: NodeJS.ErrnoException) => {
    if (error.code !== 'ECONNRESET' || (options.method ?? 'GET') !== 'GET') throw error
    return await visitOnce(port, options)
  })
}

async function visitOnce(
  port: number,
  { hostname, path = '/', headers = {}, method = 'GET', ca }: VisitOptions
): Promise<Visited> {
  return await new Promise<Visited>((resolve, reject) => {
    const send = ca === undefined ? plainRequest : request
    const outgoing = send(
      {
        ...{ host: '127.0.0.1', port, path, method, agent: false, servername: hostname },
        ...(ca !== undefined && { ca }),
        headers: { Host: hostname, ...headers }
      },
      answer => {
        let text = ''
        answer.setEncoding('utf8')
        answer.on('data', chunk => {
          text += chunk
        })
        answer.on('error', reject)
        answer.on('end', () => resolve({ status: answer.statusCode ?? 0, headers: answer.headers, text }))
      }
    )
    outgoing.on('error', reject)
    outgoing.end()
  })
}

/** A server that stands for a container: what it was asked, as JSON, with its own name. */
export async function startContainer(t: Test, name: string): Promise<TrafficTarget> {
  const server = createServer((incoming, answer) => {
    incoming.resume()
    incoming.on('end', () =>
      answer.end(
        JSON.stringify({ name, url: incoming.url, headers: incoming.headers, raw: incoming.rawHeaders })
      )
    )
  })
  await new Promise<void>(resolve => server.listen(0, '127.0.0.1', resolve))
  t.teardown(async () => {
    const closed = new Promise(resolve => server.close(resolve))
    server.closeAllConnections()
    await closed
  })
  const { port } = server.address() as AddressInfo
  return { deploymentId: randomUUID(), containerId: `c-${port}`, host: '127.0.0.1', port }
}
