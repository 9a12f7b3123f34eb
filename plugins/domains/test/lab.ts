import { randomUUID } from 'node:crypto'
import type { AddressInfo, Socket } from 'node:net'
import { createSecureContext, createServer as createTlsServer } from 'node:tls'
import { definePlugin } from 'busbar/sdk'
import { createTestKernel, type TestClient, type TestKernel } from 'busbar/sdk/testing'
import type { Test } from 'tap'
import { type ProxyDriver, proxyAbilities, proxyDrivers, type RoutingTable } from '../api.js'

/** A driver that serves certificates by SNI, of those that it is given, and no requests; and remembers what it was given. */
interface AbleDriver extends ProxyDriver {
  readonly table: RoutingTable | undefined
  refuseWith(reason: string | null): void
  /** Serves what is automatic with this; `isLocal`: as issued by an authority of its own. */
  issue(pair: { readonly cert: string; readonly key: string }, isLocal?: boolean): void
}

async function ableDriver(t: Test): Promise<AbleDriver> {
  let table: RoutingTable | undefined
  let refusal: string | null = null
  let issued: { readonly cert: string; readonly key: string } | undefined
  let localAuthority = false
  const server = createTlsServer({
    SNICallback: (name, done) => {
      const found = [table?.platform, ...(table?.routes ?? [])].find(route => route?.hostname === name)
      if (found?.tls.mode === 'automatic') return done(null, issued && createSecureContext(issued))
      const id = found?.tls.mode === 'custom' ? found.tls.certificateId : undefined
      const pair = table?.certificates.find(one => one.id === id)
      done(null, pair && createSecureContext({ cert: pair.chainPem, key: pair.keyPem }))
    }
  })
  server.on('tlsClientError', () => {})
  const sockets = new Set<Socket>()
  server.on('connection', socket => {
    sockets.add(socket)
    socket.once('close', () => sockets.delete(socket))
  })
  await new Promise<void>(resolve => server.listen(0, '127.0.0.1', resolve))
  t.teardown(async () => {
    const closed = new Promise(resolve => server.close(resolve))
    for (const socket of sockets) socket.destroy()
    await closed
  })
  const { port } = server.address() as AddressInfo
  return {
    name: 'Able',
    abilities: proxyAbilities,
    lackRemedy: 'nothing is lacking',
    get table() {
      return table
    },
    refuseWith(reason) {
      refusal = reason
    },
    issue(pair, isLocal = false) {
      issued = pair
      localAuthority = isLocal
    },
    load: async next => {
      if (refusal !== null) throw new Error(refusal)
      table = next
    },
    retarget: async () => {},
    switchTo: async () => null,
    release: async () => {},
    report: async () => ({ fault: null, tlsAt: { host: '127.0.0.1', port }, tlsFault: null, localAuthority }),
    ports: () => ({ http: 80, https: 443 })
  }
}

/** A platform with a driver that can do everything, beside the one that is built in. */
export async function ablePlatform(
  t: Test,
  environment: Readonly<Record<string, string>> = {}
): Promise<{ readonly k: TestKernel; readonly driver: AbleDriver }> {
  const driver = await ableDriver(t)
  const k = await createTestKernel({
    environment,
    inline: [
      {
        manifest: { id: 'able', requires: { domains: '^0.1.0' } },
        definition: definePlugin({
          id: 'able',
          needs: {},
          start: () => ({}),
          contributes: contribute => contribute(proxyDrivers, 'able', driver)
        })
      }
    ]
  })
  t.teardown(() => k.close())
  return { k, driver }
}

interface TestApplication {
  readonly id: string
  readonly projectId: string
  /** Where its domains are. */
  readonly domains: string
  readonly path: string
}

export async function makeApplication(client: TestClient, projectId?: string): Promise<TestApplication> {
  const slug = `p-${randomUUID().slice(0, 8)}`
  const project = projectId ?? ((await client.post('/api/projects', { name: 'P', slug })).body.id as string)
  const all = `/api/projects/${project}/applications`
  const image = { type: 'image', build_type: 'image', source_image: 'busybox:lab' }
  const { body } = await client.post(all, { name: 'web', ...image })
  return { id: body.id, projectId: project, path: `${all}/${body.id}`, domains: `${all}/${body.id}/domains` }
}
