import { randomUUID } from 'node:crypto'
import { TestSocket } from 'busbar/sdk/testing'
import { type Benchmark, millis, oursAtMost, type Row } from './benchmark.js'
import { Deployer, removeProject } from './rig/deployer.js'
import { expect } from './rig/expect.js'
import { freePort } from './rig/free-port.js'
import { removeFolder, temporaryFolder } from './rig/leftovers.js'
import { openPlatform, type Platform } from './rig/platform.js'
import { Repository } from './rig/repository.js'
import { visit } from './rig/visit.js'
import { median, quantile } from './statistics.js'

const requests = 200
const hostname = 'www.example.com'

/** How soon who watches sees a request that Caddy has answered. It needs Docker Engine with the image node:20, and the program `caddy`. */
export const traces: Benchmark = {
  name: 'traces',
  title: `Traces: ${requests} requests through Caddy to a deployed application, one after the other, and a socket that watches`,
  async run() {
    const directory = await temporaryFolder()
    const repository = await Repository.create(directory)
    const [http, https] = await Promise.all([freePort(), freePort()])
    const platform = await openPlatform({
      admins: 1,
      environment: {
        BUSBAR_CADDY_PROGRAM: 'caddy',
        BUSBAR_CADDY_BIND: '127.0.0.1',
        BUSBAR_HTTP_PORT: String(http),
        BUSBAR_HTTPS_PORT: String(https)
      }
    })
    try {
      return await measure(repository, platform, http)
    } finally {
      await removeProject(platform)
      await platform.close()
      await repository.close()
      await removeFolder(directory)
    }
  }
}

async function measure(repository: Repository, platform: Platform, port: number): Promise<Row[]> {
  const { admin, projectId } = platform
  const application = await Deployer.create(admin, projectId, repository.url)
  await application.finished(await application.start())
  expect(await admin.post(`${application.path}/domains`, { hostname, ssl_mode: 'off' }), 201)
  while ((await visit(port, hostname)) !== 200);
  const socket = await TestSocket.open(admin)
  socket.subscribe(`requests:${application.id}`)
  await firstTrace(socket, port)
  const times: number[] = []
  for (let n = 0; n < requests; n++) {
    const path = `/${randomUUID()}`
    const startedAt = performance.now()
    await Promise.all([visit(port, hostname, path), traceOf(socket, path)])
    times.push(performance.now() - startedAt)
  }
  await socket.close()
  return [
    { measure: 'from the request to the socket', ours: millis(median(times)), goal: oursAtMost(300) },
    { measure: 'the same, 95 of 100', ours: millis(quantile(times, 0.95)), goal: oursAtMost(300) },
    { measure: 'the same, the longest', ours: millis(Math.max(...times)) }
  ]
}

/** A subscription is not answered: until it is there, requests are told to nobody. */
async function firstTrace(socket: TestSocket, port: number): Promise<void> {
  for (let isThere = false; !isThere; ) {
    const path = `/${randomUUID()}`
    await visit(port, hostname, path)
    isThere = await traceOf(socket, path, 500).then(
      () => true,
      () => false
    )
  }
}

const traceOf = async (socket: TestSocket, path: string, limitMs = 5000) =>
  await socket.next(({ data }) => data?.path === path, limitMs)
