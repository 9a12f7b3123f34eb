import { type ChildProcess, spawn } from 'node:child_process'
import { randomInt } from 'node:crypto'
import { once } from 'node:events'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { createServer, request } from 'node:https'
import { type AddressInfo, createServer as createTcpServer } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { until } from 'busbar/sdk/testing'
import type { Test } from 'tap'
import { type LabCertificate, makeCertificate } from './certificates.js'

/** Pebble, an ACME authority for tests, with a name server that leads every name to 127.0.0.1 unless told otherwise. */
interface Pebble {
  readonly directoryUrl: string
  /** By which the directory is trusted. */
  readonly rootFile: string
  /** By which what it issues is trusted; PEM. */
  root(): Promise<string>
  /** Leads a name to another address. */
  lead(hostname: string, address: string): Promise<void>
  stop(): Promise<void>
}

interface PebbleOptions {
  /** Where it asks names for challenges. */
  readonly httpPort: number
  readonly httpsPort: number
}

/** Ends with the test. */
export async function openPebble(t: Test, { httpPort, httpsPort }: PebbleOptions): Promise<Pebble> {
  const directory = await mkdtemp(join(tmpdir(), 'busbar-pebble-'))
  const front = makeCertificate({ names: ['IP:127.0.0.1', 'DNS:localhost'], subject: '/CN=front' })
  const rootFile = join(directory, 'front.pem')
  const [api = 0, management = 0, dns = 0, names = 0] = await freeTcpPorts(4)
  await writeFile(rootFile, front.cert)
  await writeFile(join(directory, 'front.key'), front.key)
  await writeFile(
    join(directory, 'pebble.json'),
    JSON.stringify({
      pebble: {
        listenAddress: `127.0.0.1:${api}`,
        managementListenAddress: `127.0.0.1:${management}`,
        certificate: rootFile,
        privateKey: join(directory, 'front.key'),
        httpPort,
        tlsPort: httpsPort,
        ocspResponderURL: '',
        externalAccountBindingRequired: false
      }
    })
  )
  const programs = [
    spawn(
      'pebble-challtestsrv',
      [
        ...['-http01', '', '-https01', '', '-tlsalpn01', '', '-dns01', `127.0.0.1:${dns}`],
        ...['-management', `127.0.0.1:${names}`, '-defaultIPv4', '127.0.0.1', '-defaultIPv6', '']
      ],
      { stdio: 'ignore' }
    ),
    spawn('pebble', ['-config', join(directory, 'pebble.json'), '-dnsserver', `127.0.0.1:${dns}`], {
      stdio: 'ignore',
      env: { ...process.env, PEBBLE_VA_NOSLEEP: '1', PEBBLE_WFE_NONCEREJECT: '0' }
    })
  ]
  const stop = async (): Promise<void> => {
    await Promise.all(programs.splice(0).map(ended))
  }
  t.teardown(async () => {
    await stop()
    await rm(directory, { recursive: true, force: true })
  })
  const ask = async (path: string, port: number): Promise<string> => await fetchText(port, path, front.cert)
  await until(async () => await ask('/dir', api).catch(() => undefined), 'that pebble answers')
  return {
    directoryUrl: `https://127.0.0.1:${api}/dir`,
    rootFile,
    root: async () => await ask('/roots/0', management),
    lead: async (hostname, address) => {
      await fetch(`http://127.0.0.1:${names}/add-a`, {
        method: 'POST',
        body: JSON.stringify({ host: `${hostname}.`, addresses: [address] })
      })
    },
    stop
  }
}

async function ended(program: ChildProcess): Promise<void> {
  if (program.exitCode !== null || program.signalCode !== null) return
  const exit = once(program, 'exit')
  program.kill('SIGKILL')
  await exit
}

/** Below those that the system gives to connections, so that none takes one before it is listened on. */
const lowestPort = 15_000
const highestPort = 19_999

/** Ports of 127.0.0.1 that nothing listens on. */
export async function freeTcpPorts(count: number): Promise<number[]> {
  const ports = new Set<number>()
  while (ports.size < count) {
    const port = randomInt(lowestPort, highestPort + 1)
    if (await isFree(port)) ports.add(port)
  }
  return [...ports]
}

async function isFree(port: number): Promise<boolean> {
  const server = createTcpServer()
  return await new Promise(resolve => {
    server.once('error', () => resolve(false))
    server.listen(port, '127.0.0.1', () => server.close(() => resolve(true)))
  })
}

async function fetchText(port: number, path: string, ca: string): Promise<string> {
  return await new Promise<string>((resolve, reject) => {
    const outgoing = request({ host: '127.0.0.1', port, path, ca, agent: false }, answer => {
      let text = ''
      answer.on('data', chunk => {
        text += chunk
      })
      answer.on('error', reject)
      answer.on('end', () => resolve(text))
    })
    outgoing.on('error', reject)
    outgoing.end()
  })
}

/** An ACME authority that takes accounts and refuses each order with a problem document (RFC 8555, 6.7). */
export async function refusingAuthority(
  t: Test,
  front: LabCertificate,
  problem: { readonly status: number; readonly type: string; readonly detail: string }
): Promise<string> {
  const server = createServer({ cert: front.cert, key: front.key }, (incoming, answer) => {
    incoming.resume()
    incoming.on('end', () => {
      const base = `https://127.0.0.1:${(server.address() as AddressInfo).port}`
      answer.setHeader('Replay-Nonce', Buffer.from(String(Math.random())).toString('base64url'))
      const send = (status: number, body: object, type = 'application/json'): void => {
        answer.writeHead(status, { 'Content-Type': type })
        answer.end(JSON.stringify(body))
      }
      if (incoming.url === '/dir')
        send(200, { newNonce: `${base}/nonce`, newAccount: `${base}/account`, newOrder: `${base}/order` })
      else if (incoming.url === '/account') {
        answer.setHeader('Location', `${base}/account/1`)
        send(201, { status: 'valid' })
      } else if (incoming.url === '/order')
        send(
          problem.status,
          { ...problem, type: `urn:ietf:params:acme:error:${problem.type}` },
          'application/problem+json'
        )
      else answer.end()
    })
  })
  await new Promise<void>(resolve => server.listen(0, '127.0.0.1', resolve))
  t.teardown(async () => {
    const closed = new Promise(resolve => server.close(resolve))
    server.closeAllConnections()
    await closed
  })
  return `https://127.0.0.1:${(server.address() as AddressInfo).port}/dir`
}
