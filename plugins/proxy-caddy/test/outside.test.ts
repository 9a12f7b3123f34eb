import { execFileSync, spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdir, stat, writeFile } from 'node:fs/promises'
import { createServer, request } from 'node:http'
import { join } from 'node:path'
import { until } from 'busbar/sdk/testing'
import { type Test, test } from 'tap'
import { freeTcpPorts } from '../../../lab/pebble.js'
import { requireRoot } from '../../../lab/requirements.js'
import { route, table } from '../../domains/test/driver-contract.js'
import { AdminClient } from '../admin-client.js'
import { caddyLab, labDirectory, startContainer, visit } from './caddy-lab.js'

/** A Caddy as an operator runs it, without a configuration, and its admin API behind a door that counts loads and can be shut. */
async function outsideCaddy(
  t: Test
): Promise<{ readonly url: string; loads(): number; shut(isShut: boolean): void }> {
  const home = await labDirectory(t)
  const [inner = 0, port = 0] = await freeTcpPorts(2)
  const program = spawn('caddy', ['run', '--config', '-'], {
    env: { PATH: process.env.PATH, HOME: home },
    stdio: ['pipe', 'ignore', 'ignore']
  })
  program.stdin?.end(JSON.stringify({ admin: { listen: `127.0.0.1:${inner}`, config: { persist: false } } }))
  let loads = 0
  let isShut = false
  const door = createServer((incoming, answer) => {
    if (isShut) {
      incoming.socket.destroy()
      return
    }
    if (incoming.url === '/load') loads++
    const host = `127.0.0.1:${inner}`
    const onward = request(
      {
        ...{ host: '127.0.0.1', port: inner, method: incoming.method, path: incoming.url, agent: false },
        headers: { ...incoming.headers, host, origin: `http://${host}` }
      },
      inside => {
        answer.writeHead(inside.statusCode ?? 502, { 'Content-Type': 'application/json' })
        inside.pipe(answer)
      }
    )
    onward.on('error', () => answer.destroy())
    incoming.pipe(onward)
  })
  await new Promise<void>(resolve => door.listen(port, '127.0.0.1', resolve))
  t.teardown(async () => {
    const closed = new Promise(resolve => door.close(resolve))
    door.closeAllConnections()
    await closed
    const exit = once(program, 'exit')
    program.kill('SIGKILL')
    await exit
  })
  const client = new AdminClient({ kind: 'tcp', host: '127.0.0.1', port })
  await until(
    async () =>
      await client.config().then(
        () => true,
        () => undefined
      ),
    'that Caddy answers'
  )
  return {
    url: `http://127.0.0.1:${port}`,
    loads: () => loads,
    shut: shut => {
      isShut = shut
    }
  }
}

test('a thousand hostnames are one load, what comes together is loaded together, and a deploy loads nothing', async t => {
  const caddy = await outsideCaddy(t)
  const { driver, http } = await caddyLab(t, { environment: { CADDY_ADMIN_URL: caddy.url } })
  const containers = [await startContainer(t, 'a'), await startContainer(t, 'b')] as const
  await driver.retarget('a', new Map([[null, containers[0]]]))
  const many = Array.from({ length: 1000 }, (_, n) =>
    route({ id: `r${n}`, hostname: `h${n}.example.com`, applicationId: 'a' })
  )
  await driver.load(table(...many))
  const first = caddy.loads()
  t.ok(first <= 2, `${first} loads: a Caddy before 2.7 refuses what it does not know`)
  for (const n of [0, 500, 999]) t.equal((await visit(http, { hostname: `h${n}.example.com` })).status, 200)
  await driver.load(table(...many))
  t.equal(caddy.loads(), first, 'what is loaded already is not loaded again')

  await Promise.all(
    Array.from({ length: 20 }, async (_, n) => await driver.load(table(...many.slice(0, 1000 - n * 50))))
  )
  t.ok(caddy.loads() <= first + 2, `20 changes at once made ${caddy.loads() - first} loads`)
  t.equal((await visit(http, { hostname: 'h49.example.com' })).status, 200)
  t.equal((await visit(http, { hostname: 'h50.example.com' })).status, 404, 'the last one counts')

  const before = caddy.loads()
  await (await driver.switchTo('a', new Map([[null, containers[1]]])))?.drain(1000)
  t.match((await visit(http, { hostname: 'h0.example.com' })).text, /"name":"b"/)
  await driver.retarget('a', null)
  t.equal((await visit(http, { hostname: 'h0.example.com' })).status, 503)
  t.equal(caddy.loads(), before)
})

test('while the admin API cannot be reached, what is loaded is served, and it is told why no more is', async t => {
  const caddy = await outsideCaddy(t)
  const { driver, http } = await caddyLab(t, { environment: { CADDY_ADMIN_URL: caddy.url } })
  await driver.retarget('a', new Map([[null, await startContainer(t, 'a')]]))
  const [first, second] = ['one.example.com', 'two.example.com'].map(hostname =>
    route({ hostname, applicationId: 'a' })
  )
  if (first === undefined || second === undefined) return
  await driver.load(table(first))
  caddy.shut(true)
  await t.rejects(driver.load(table(first, second)), /socket hang up|cannot be reached/)
  t.match(await driver.reconciler.reconcile(), { lastError: /hang up|cannot be reached/ })
  t.equal((await visit(http, { hostname: 'one.example.com' })).status, 200, 'it goes on')
  await driver.retarget('a', null)
  t.equal(
    (await visit(http, { hostname: 'one.example.com' })).status,
    503,
    'and follows the application all the same'
  )
  caddy.shut(false)
  await driver.load(table(first, second))
  t.equal((await visit(http, { hostname: 'two.example.com' })).status, 503)
  t.match(await driver.reconciler.reconcile(), { lastError: null, lastAdded: 0, lastUpdated: 0 })
})

test('a Caddy that runs already is reached by a Unix socket, which it keeps', async t => {
  const home = await labDirectory(t)
  const socket = join(home, 'admin.sock')
  const program = spawn('caddy', ['run', '--config', '-'], {
    env: { PATH: process.env.PATH, HOME: home },
    stdio: ['pipe', 'ignore', 'ignore']
  })
  t.teardown(async () => {
    const exit = once(program, 'exit')
    program.kill('SIGKILL')
    await exit
  })
  program.stdin?.end(JSON.stringify({ admin: { listen: `unix/${socket}`, config: { persist: false } } }))
  const client = new AdminClient({ kind: 'unix', path: socket })
  const answers = async (): Promise<true | undefined> =>
    await client.config().then(
      () => true,
      () => undefined
    )
  await until(answers, 'that Caddy answers')
  for (const url of [`unix://${socket}`, `unix/${socket}`]) {
    const { driver, http, close } = await caddyLab(t, { environment: { CADDY_ADMIN_URL: url } })
    await driver.retarget('a', new Map([[null, await startContainer(t, 'a')]]))
    await driver.load(table(route({ hostname: 'one.example.com', applicationId: 'a' })))
    t.equal((await visit(http, { hostname: 'one.example.com' })).status, 200, url)
    t.match(await client.config(), { admin: { listen: `unix/${socket}` } }, 'the socket stays where it is')
    t.match(await driver.reconciler.reconcile(), { lastError: null, lastUpdated: 0 })
    t.match(await driver.logs(5), '', 'it has no log that the platform could read')
    await t.rejects(driver.restart(), /not run by the platform/)
    await close()
    t.ok(await answers(), 'it goes on without us')
    t.same(Object.keys((await client.config()) as object), ['admin'], 'and without what it served for us')
  }
})

test('a full disk keeps no hostname from being served', async t => {
  if (!requireRoot(t, 'mounts a small disk')) return
  const directory = await labDirectory(t)
  const logs = join(directory, 'logs')
  await mkdir(logs)
  execFileSync('mount', ['-t', 'tmpfs', '-o', 'size=64k', 'tmpfs', logs])
  t.teardown(() => execFileSync('umount', ['-l', logs]))
  await writeFile(join(logs, 'full'), Buffer.alloc(64 * 1024)).catch(() => {})
  const { driver, http } = await caddyLab(t, { directory })
  await driver.retarget('a', new Map([[null, await startContainer(t, 'a')]]))
  await driver.load(table(route({ hostname: 'one.example.com', applicationId: 'a' })))
  for (let n = 0; n < 20; n++) t.equal((await visit(http, { hostname: 'one.example.com' })).status, 200)
  await driver.load(table(route({ hostname: 'two.example.com', applicationId: 'a' })))
  t.equal((await visit(http, { hostname: 'two.example.com' })).status, 200, 'a change is served, too')
  t.equal((await stat(join(logs, 'full'))).size, 64 * 1024, 'it has been full all the time')
  t.match(await driver.report('two.example.com'), { fault: null })
})
