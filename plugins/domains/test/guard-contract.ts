import { hashSync } from 'bcryptjs'
import type { Test } from 'tap'
import { WebSocket } from 'ws'
import type { ProxyAbility, ProxyDriver, RouteFeature } from '../api.js'
import { type DriverMaker, only, route, startContainer, table, visit } from './driver-contract.js'

const able = (driver: ProxyDriver, ...abilities: ProxyAbility[]): boolean =>
  abilities.every(one => driver.abilities.includes(one))
const basic = (pair: string): string => `Basic ${Buffer.from(pair).toString('base64')}`

/** What every driver does about who may pass, over plain HTTP. */
export async function guardContract(t: Test, make: DriverMaker): Promise<void> {
  await t.test('a name and a password are asked for, of sockets too', async t => {
    const driver = await make(t)
    if (!able(driver, 'basic_auth')) return
    await driver.retarget('x', only(await startContainer(t, 'a')))
    const features: RouteFeature[] = [
      { type: 'basic_auth', username: 'ann', hashedPassword: hashSync('sesam öffne', 4) }
    ]
    const hostname = 'www.example.com'
    await driver.load(table(route({ hostname, applicationId: 'x', features })))
    const status = async (authorization?: string): Promise<number> =>
      (await visit(driver, hostname, '/', authorization === undefined ? {} : { headers: { authorization } }))
        .status
    t.match(await visit(driver, hostname), { status: 401, headers: { 'www-authenticate': /^Basic / } })
    t.equal(await status(basic('ann:sesam öffne')), 200)
    t.equal(await status(basic('ann:sesam öffne')), 200, 'and again')
    for (const wrong of [basic('ann:sesam'), basic('bob:sesam öffne'), basic('ann'), 'Basic %%%', 'Bearer x'])
      t.equal(await status(wrong), 401, wrong)
    const opened = async (headers: Record<string, string>): Promise<string> =>
      await new Promise(resolve => {
        const socket = new WebSocket(`ws://127.0.0.1:${driver.ports().http}/`, {
          headers: { Host: hostname, ...headers }
        })
        socket.once('error', ({ message }) => resolve(message))
        socket.once('open', () => {
          socket.terminate()
          resolve('open')
        })
      })
    t.match(await opened({}), /401/)
    t.equal(await opened({ authorization: basic('ann:sesam öffne') }), 'open')
  })

  await t.test('beyond its rate a client is told when to come again', async t => {
    const driver = await make(t)
    if (!able(driver, 'rate_limit')) return
    await driver.retarget('x', only(await startContainer(t, 'a')))
    const limited = route({
      hostname: 'www.example.com',
      applicationId: 'x',
      features: [{ type: 'rate_limit', rate: '2/h', burst: 1 }]
    })
    await driver.load(table(limited))
    const ask = async (hostname = 'www.example.com') => await visit(driver, hostname)
    for (let times = 1; times <= 3; times += 1) t.equal((await ask()).status, 200, `request ${times}`)
    t.match(await ask(), { status: 429, headers: { 'retry-after': /^\d+$/ } })
    const other = route({ hostname: 'other.example.com', applicationId: 'x' })
    await driver.load(table(limited, other))
    t.equal((await ask()).status, 429, 'what was counted stays when something else changes')
    t.equal((await ask('other.example.com')).status, 200)
  })

  await t.test(
    'the client behind a proxy that is believed is whom that has named, and nobody else believes it',
    async t => {
      const driver = await make(t)
      if (!able(driver, 'ip_allowlist')) return
      await driver.retarget('x', only(await startContainer(t, 'a')))
      const allows = (hostname: string, ...ranges: string[]) =>
        route({ hostname, applicationId: 'x', features: [{ type: 'ip_allowlist', ranges }] })
      const routes = [
        allows('client.example.com', '203.0.113.0/24'),
        allows('claimed.example.com', '192.0.2.0/24'),
        allows('nobody.example.com')
      ]
      const headers = { 'X-Forwarded-For': '192.0.2.1, 203.0.113.7', 'X-Forwarded-Proto': 'https' }
      const status = async (hostname: string): Promise<number> =>
        (await visit(driver, hostname, '/', { headers })).status
      await driver.load(table(...routes))
      t.equal(await status('client.example.com'), 403, 'without such a proxy')
      await driver.load({ ...table(...routes), trustedProxies: ['127.0.0.0/8'] })
      t.equal(await status('client.example.com'), 200)
      t.equal(await status('claimed.example.com'), 403, 'what stands left of the client is its own claim')
      t.equal(await status('nobody.example.com'), 403, 'of no range nobody is let in')
      const { seen } = await visit(driver, 'client.example.com', '/', { headers })
      t.match(seen.headers?.['x-forwarded-for'], /203\.0\.113\.7/)
      t.equal(seen.headers?.['x-forwarded-proto'], 'https')
    }
  )

  await t.test(
    'the platform is served by its own hostname, where its cookies pass, and nowhere else',
    async t => {
      const driver = await make(t)
      const [application, upstream] = [await startContainer(t, 'a'), await startContainer(t, 'platform')]
      await driver.retarget('x', only(application))
      const cookies = { Cookie: 'token=busbar_ses_abc; csrf_token=x' }
      const platform = {
        hostname: 'panel.example.com',
        forceHttps: false,
        tls: { mode: 'off' },
        upstream: { host: upstream.host, port: upstream.port }
      } as const
      const routes = [
        route({ hostname: 'www.example.com', applicationId: 'x' }),
        route({ hostname: '*.example.com', applicationId: 'x' })
      ]
      await driver.load({ ...table(...routes), platform })
      const own = await visit(driver, 'panel.example.com', '/api/x?y=1', { headers: cookies })
      t.match(own.seen, { name: 'platform', url: '/api/x?y=1', headers: { cookie: cookies.Cookie } })
      t.same(own.headers['set-cookie'], ['token=mine', 'own=1'])
      t.match(own.seen.headers, { host: /^panel\.example\.com/, 'x-forwarded-for': /127\.0\.0\.1$/ })
      const other = await visit(driver, 'www.example.com', '/', { headers: cookies })
      t.equal(other.seen.name, 'a')
      // Some proxies can empty a header and not take it away.
      t.equal(other.seen.headers?.cookie ?? '', '')
      t.match(await driver.report('panel.example.com'), { fault: null })
      await driver.load(table(...routes))
      t.equal(
        (await visit(driver, 'panel.example.com')).seen.name,
        'a',
        'without it the name is as any other'
      )
    }
  )
}
