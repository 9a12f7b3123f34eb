import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync } from 'node:fs'
import { cp, readdir, readFile, rename, stat } from 'node:fs/promises'
import { join } from 'node:path'
import { until } from 'busbar/sdk/testing'
import { type Test, test } from 'tap'
import { freeTcpPorts } from '../../../lab/pebble.js'
import { route, table } from '../../domains/test/driver-contract.js'
import { AdminClient } from '../admin-client.js'
import type { JsonObject } from '../config/json.js'
import { caddyLab, labDirectory, startContainer, visit } from './caddy-lab.js'

/** A Caddy that is none of the platform's. */
async function foreignCaddy(t: Test, config: JsonObject, client: AdminClient): Promise<ChildProcess> {
  const home = await labDirectory(t)
  const program = spawn('caddy', ['run', '--config', '-'], {
    env: { PATH: process.env.PATH, HOME: home },
    stdio: ['pipe', 'ignore', 'ignore']
  })
  t.teardown(async () => {
    if (program.exitCode !== null || program.signalCode !== null) return
    const exit = once(program, 'exit')
    program.kill('SIGKILL')
    await exit
  })
  program.stdin?.end(JSON.stringify(config))
  await until(
    async () =>
      await client.config().then(
        () => true,
        () => undefined
      ),
    'that it answers'
  )
  return program
}

/** The process whose arguments and folder are those of a Caddy that the platform runs there. */
async function processIn(directory: string): Promise<number> {
  for (const pid of await readdir('/proc')) {
    if (!/^\d+$/.test(pid)) continue
    const environment = await readFile(`/proc/${pid}/environ`, 'utf8').catch(() => '')
    const command = await readFile(`/proc/${pid}/cmdline`, 'utf8').catch(() => '')
    if (environment.split('\0').includes(`HOME=${directory}`) && command.includes('caddy')) return Number(pid)
  }
  throw new Error(`no Caddy runs in ${directory}`)
}

const served = table(route({ hostname: 'www.example.com', applicationId: 'a' }))

test('a killed, a wiped and a changed Caddy serve again what they are to', async t => {
  const { driver, http, directory } = await caddyLab(t)
  await driver.retarget('a', new Map([[null, await startContainer(t, 'a')]]))
  await driver.load(served)
  const isServed = async (): Promise<true | undefined> =>
    await visit(http, { hostname: 'www.example.com' }).then(
      ({ status }) => (status === 200 ? true : undefined),
      () => undefined
    )
  t.ok(await isServed())
  const client = new AdminClient({ kind: 'unix', path: join(directory, 'admin.sock') })

  const killed = await processIn(directory)
  process.kill(killed, 'SIGKILL')
  await until(isServed, 'that a killed one serves again')
  t.not(await processIn(directory), killed)
  t.match(await driver.report('www.example.com'), { fault: null })

  const { admin } = (await client.config()) as { admin: JsonObject }
  await client.load({ admin })
  await until(isServed, 'that a wiped one serves again')

  const { totalDrift } = driver.reconciler.status()
  const loaded = (await client.config()) as {
    apps: { http: { servers: { busbar: { routes: Array<Record<string, unknown>> } } } }
  }
  const { routes } = loaded.apps.http.servers.busbar
  loaded.apps.http.servers.busbar.routes = routes.filter(one => one['@id'] !== 'busbar-host-www.example.com')
  await client.load(loaded as unknown as JsonObject)
  t.equal((await visit(http, { hostname: 'www.example.com' })).status, 404)
  t.match(await driver.reconciler.reconcile(), {
    lastAdded: 1,
    lastUpdated: 0,
    lastRemoved: 0,
    lastError: null
  })
  t.ok(await isServed())
  t.equal(driver.reconciler.status().totalDrift, totalDrift + 1)
  t.match(await driver.reconciler.reconcile(), { lastAdded: 0, lastUpdated: 0, lastRemoved: 0 }, 'once')

  const before = await processIn(directory)
  await driver.restart()
  t.not(await processIn(directory), before)
  t.ok(await isServed())
  t.match(await driver.logs(5), /"msg":/)
  t.ok((await driver.logs(2)).split('\n').length <= 2)
  await driver.release()
  t.match(await driver.report('www.example.com'), { fault: /not in charge/ })
  await t.rejects(driver.restart(), /not in charge/)
})

test('a Caddy whose program was replaced while it serves is whole again by the new one', async t => {
  const programs = await labDirectory(t)
  const program = join(programs, 'caddy')
  const [installed = ''] = (process.env.PATH ?? '').split(':').flatMap(folder => {
    const path = join(folder, 'caddy')
    return existsSync(path) ? [path] : []
  })
  await cp(installed, join(programs, 'old'), { dereference: true })
  await cp(installed, join(programs, 'new'), { dereference: true })
  await rename(join(programs, 'old'), program)
  const { driver, http, directory } = await caddyLab(t, { environment: { BUSBAR_CADDY_PROGRAM: program } })
  const container = await startContainer(t, 'a')
  await driver.retarget('a', new Map([[null, container]]))
  await driver.load(served)
  const status = async (): Promise<number | undefined> =>
    await visit(http, { hostname: 'www.example.com' }).then(
      answer => answer.status,
      () => undefined
    )
  const fileOf = async (pid: number): Promise<number> => (await stat(`/proc/${pid}/exe`)).ino
  const before = await processIn(directory)
  // As a package manager does it: the process that runs keeps the file that it was started from.
  await rename(join(programs, 'new'), program)
  t.equal(await status(), 200, 'the old one goes on')
  t.not(await fileOf(before), (await stat(program)).ino)
  process.kill(before, 'SIGTERM')
  const isNew = async (): Promise<boolean> =>
    (await fileOf(await processIn(directory))) === (await stat(program)).ino
  // The old one may answer while it ends.
  await until(
    async () => (await isNew().catch(() => false)) && (await status()) === 200,
    'that the new program serves'
  )
  t.match(await driver.report('www.example.com'), { fault: null })
  t.match(await driver.reconciler.reconcile(), { lastError: null, lastUpdated: 0 })
  await driver.restart()
  t.equal(await status(), 200)
})

test('what a killed platform has left behind goes on, and two processes do not fight over it', async t => {
  const directory = await labDirectory(t)
  const ports = (await freeTcpPorts(2)) as [number, number]
  const first = await caddyLab(t, { directory, ports })
  const container = await startContainer(t, 'a')
  await first.driver.retarget('a', new Map([[null, container]]))
  await first.driver.load(served)
  const second = await caddyLab(t, { directory, ports })
  t.match(second.driver.fault(), /another process of this installation/)
  t.equal(second.driver.fallback, true, 'so that it is not put in charge')
  await t.rejects(second.driver.load(served), /another process/)
  await second.driver.release()
  t.equal((await visit(ports[0], { hostname: 'www.example.com' })).status, 200, 'the first one goes on')

  const client = new AdminClient({ kind: 'unix', path: join(directory, 'admin.sock') })
  const config = (await client.config()) as JsonObject
  await first.close()
  const left = await foreignCaddy(t, config, client)
  await until(async () => second.driver.fallback === undefined, 'that the second one finds that it may')
  await second.driver.retarget('a', new Map([[null, container]]))
  await second.driver.load(served)
  t.equal((await visit(ports[0], { hostname: 'www.example.com' })).status, 200)
  t.equal(left.exitCode ?? left.signalCode, null, 'the process that was left behind serves')
  left.kill('SIGKILL')
  await until(
    async () =>
      (await visit(ports[0], { hostname: 'www.example.com' }).catch(() => undefined))?.status === 200,
    'that one of its own takes its place'
  )
})

test('a Caddy of somebody else is never touched, nor a port of one shared', async t => {
  const [admin = 0, port = 0, https = 0] = await freeTcpPorts(3)
  const client = new AdminClient({ kind: 'tcp', host: '127.0.0.1', port: admin })
  const block = { listen: `127.0.0.1:${admin}`, config: { persist: false } }
  const foreign: JsonObject = {
    admin: block,
    apps: {
      http: {
        servers: {
          theirs: {
            listen: [`127.0.0.1:${port}`],
            automatic_https: { disable: true },
            routes: [{ handle: [{ handler: 'static_response', body: 'theirs' }] }]
          }
        }
      }
    }
  }
  await foreignCaddy(t, foreign, client)
  const outside = await caddyLab(t, { environment: { CADDY_ADMIN_URL: `http://127.0.0.1:${admin}` } })
  t.equal(outside.driver.fallback, true)
  t.match(outside.driver.fault(), /not of this platform.*CADDY_ADMIN_URL/)
  await t.rejects(outside.driver.load(served), /not of this platform/)
  await outside.driver.release()
  t.match(await client.config(), foreign, 'it is as it was')

  const beside = await caddyLab(t, { ports: [port, https] })
  t.match(beside.driver.fault(), new RegExp(`port ${port}: end it, or set BUSBAR_HTTP_PORT`))
  await t.rejects(beside.driver.load(served), /another program listens/)
  for (let n = 0; n < 5; n++) t.equal((await visit(port, { hostname: 'x.example.com' })).text, 'theirs')

  // It is given to us, and taken back.
  await client.load({ admin: block })
  await until(async () => outside.driver.fallback === undefined, 'that it is seen to be free')
  await outside.driver.load(served)
  t.equal((await visit(outside.http, { hostname: 'www.example.com' })).status, 503)
  await t.rejects(outside.driver.restart(), /not run by the platform/)
  await client.load(foreign)
  await until(async () => outside.driver.fallback === true, 'that it is left alone again')
  t.match(await client.config(), foreign)
  await outside.driver.release()
  t.match(await client.config(), foreign)
})

test('a route that Caddy refuses is told of, and all others are served', async t => {
  const { driver, http } = await caddyLab(t)
  await driver.retarget('a', new Map([[null, await startContainer(t, 'a')]]))
  const fine = { handler: 'headers', response: { set: { 'X-Fine': ['1'] } } }
  const written = (hostname: string, handlers: readonly object[]) =>
    route({ hostname, applicationId: 'a', handlers })
  const broken = written('broken.example.com', [
    { handler: 'rewrite', path_regexp: [{ find: '(', replace: '' }] }
  ])
  await driver.load(
    table(
      written('fine.example.com', [fine]),
      broken,
      route({ hostname: 'www.example.com', applicationId: 'a' })
    )
  )
  t.match(await visit(http, { hostname: 'fine.example.com' }), { status: 200, headers: { 'x-fine': '1' } })
  t.equal((await visit(http, { hostname: 'www.example.com' })).status, 200)
  t.match(await visit(http, { hostname: 'broken.example.com' }), {
    status: 503,
    text: /cannot be served the way/
  })
  t.match((await driver.report('broken.example.com')).fault, /advanced_config.*missing closing/)
  t.equal((await driver.report('fine.example.com')).fault, null)
  await driver.load(table({ ...broken, handlers: [{ handler: 'file_server' }] }))
  t.equal((await visit(http, { hostname: 'broken.example.com' })).status, 503)
  t.match((await driver.report('broken.example.com')).fault, /advanced_config is not allowed/)
  await driver.load(table({ ...broken, handlers: [fine] }))
  t.equal((await visit(http, { hostname: 'broken.example.com' })).status, 200, 'served once it is right')
  t.equal((await driver.report('broken.example.com')).fault, null)

  t.equal(await driver.checkHandlers([fine]), null)
  t.match(await driver.checkHandlers([{ handler: 'file_server' }]), /not allowed/)
  t.match(
    await driver.checkHandlers([{ handler: 'rewrite', path_regexp: [{ find: '(', replace: '' }] }]),
    /Caddy refuses it.*missing closing/
  )
})
