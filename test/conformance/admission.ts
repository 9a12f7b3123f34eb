import { request } from 'node:http'
import type { Claim } from './claims.js'
import { listedOrigin } from './installation.js'
import { LiveClient } from './live-client.js'
import type { Credential, Stage } from './stage.js'

const said = 'x:speaker:said'

/** The status and the body with which an upgrade is refused; 101 when it is not. */
async function knock(url: string, headers: Credential, path = '/api/ws'): Promise<readonly [number, any]> {
  const upgrade = request(url + path, {
    headers: {
      connection: 'Upgrade',
      upgrade: 'websocket',
      'sec-websocket-key': 'dGhlIHNhbXBsZSBub25jZQ==',
      'sec-websocket-version': '13',
      ...headers
    }
  }).end()
  return await new Promise((resolve, reject) => {
    upgrade.on('upgrade', (_response, socket) => {
      socket.destroy()
      resolve([101, undefined])
    })
    upgrade.on('response', response => {
      let text = ''
      response.setEncoding('utf8')
      response.on('data', chunk => {
        text += String(chunk)
      })
      response.on('end', () => {
        resolve([response.statusCode ?? 0, text.startsWith('{') ? JSON.parse(text) : text])
      })
    })
    upgrade.on('error', reject)
  })
}

/** All sockets of somebody, at the processes in turn, until one is closed at once. */
async function fill(stage: Stage, who: Credential, most: number): Promise<LiveClient[]> {
  const open: LiveClient[] = []
  while (open.length < most) {
    const client = await stage.connect(who)
    await stage.hears(client, said)
    open.push(client)
  }
  return open
}

/** Who gets a socket. */
export const admissionClaims: readonly Claim[] = [
  {
    says: [
      'WebSocket: authenticates like the rest of the API (read-scope token suffices).',
      'Browsers use the session cookie.'
    ],
    async holds(t, stage) {
      const { owner } = stage.cast
      for (const scope of ['read', 'deploy', 'write']) {
        const { credential } = await stage.makeToken(owner, scope)
        await stage.hears(await stage.connect(credential), said)
      }
      const { cookie = '' } = owner.session
      const browser = await stage.connect({ cookie, origin: stage.nextUrl })
      await stage.hears(browser, said, `x:speaker:app:${stage.of.applicationId}`)
      t.equal(browser.end, undefined, 'the cookie is enough: an upgrade changes nothing')
    }
  },
  {
    says: [
      'A missing or invalid credential gives 401 before the upgrade.',
      'A token in the query is never accepted.'
    ],
    async holds(t, stage) {
      const { credential } = await stage.makeToken(stage.cast.owner, 'read')
      const value = credential.authorization?.slice('Bearer '.length) ?? ''
      const { cookie = '' } = stage.cast.owner.session
      for (const url of stage.listeningUrls) {
        t.match(await knock(url, {}), [401, { error: 'unauthorized' }])
        const bads: readonly Credential[] = [
          { authorization: 'Bearer busbar_pat_nothing' },
          { authorization: `Bearer ${value}x` },
          { authorization: 'Bearer ', cookie },
          { authorization: 'Bearer busbar_pat_nothing', cookie },
          { cookie: 'token=nothing' },
          { cookie: `token=${value}` }
        ]
        for (const bad of bads) t.equal((await knock(url, bad))[0], 401, JSON.stringify(bad).slice(0, 60))
        for (const name of ['token', 'access_token', 'authorization'])
          t.equal((await knock(url, {}, `/api/ws?${name}=${value}`))[0], 401, name)
        t.equal((await knock(url, credential))[0], 101)
      }
    }
  },
  {
    says: [
      'A disallowed Origin header is rejected before the upgrade; same-origin and origins in the `CORS_ORIGINS` setting are accepted; a request without Origin is not affected.',
      'Order before the upgrade: 401, metrics-scope token 403, Origin 403 `origin not allowed`.'
    ],
    async holds(t, stage) {
      const { credential: reading } = await stage.makeToken(stage.cast.owner, 'read')
      const { credential: measuring } = await stage.makeToken(stage.cast.owner, 'metrics')
      const evil = { origin: 'https://evil.example.com' }
      for (const url of stage.listeningUrls) {
        const goods: readonly Credential[] = [
          {},
          { origin: url },
          { origin: listedOrigin },
          { origin: listedOrigin.toUpperCase() }
        ]
        for (const good of goods)
          t.equal((await knock(url, { ...reading, ...good }))[0], 101, JSON.stringify(good))
        for (const origin of [
          evil.origin,
          'null',
          '',
          `${listedOrigin}.evil.com`,
          `${listedOrigin}:8443`,
          listedOrigin.replace('https', 'http'),
          `${url}0`,
          url.replace('127.0.0.1', 'localhost')
        ])
          t.match(await knock(url, { ...reading, origin }), [403, { error: 'origin not allowed' }], origin)
        t.equal((await knock(url, evil))[0], 401)
        t.match(await knock(url, { ...measuring, ...evil }), [
          403,
          { error: 'token lacks required scope: read' }
        ])
        t.match(await knock(url, { ...stage.cast.owner.session, ...evil }), [
          403,
          { error: 'origin not allowed' }
        ])
      }
    }
  },
  {
    says: [
      'A WebSocket connection over the per-user cap is accepted and then closed at once with close code 1013 (Try Again Later).',
      'WebSocket connections: 20 concurrent per user by default (setting `MAX_WEBSOCKET_CONNS_PER_USER`)',
      'The cap counts /api/ws only, by user and not by token; over it the reason is `too many connections`.'
    ],
    async holds(t, stage) {
      const { owner, stranger } = stage.cast
      const tokens = [await stage.makeToken(owner, 'read'), await stage.makeToken(owner, 'write')]
      const open = [
        ...(await fill(stage, owner.session, 12)),
        ...(await fill(stage, tokens[0]?.credential ?? {}, 4)),
        ...(await fill(stage, tokens[1]?.credential ?? {}, 4))
      ]
      t.equal(open.length, 20)
      for (const who of [owner.session, ...tokens.map(({ credential }) => credential)])
        for (const url of stage.listeningUrls) {
          const client = await LiveClient.open(url, who)
          t.same(await client.closed(), { code: 1013, reason: 'too many connections' })
          t.same(client.texts, [])
        }
      await stage.hears(await stage.connect(stranger.session), said)
      for (const client of open) t.equal(client.end, undefined, 'the others are not affected')
      await open[0]?.close()
      open[1]?.socket.terminate()
      await stage.waits(async () => {
        const client = await stage.connect(owner.session)
        client.subscribe('nowhere')
        await stage.waits(
          () => client.end !== undefined || client.frames.length > 0,
          'it is answered or closed'
        )
        return client.end === undefined
      }, 'there is room again')
    }
  },
  {
    says: ["A token's socket handshake counts as one request; frames do not."],
    async holds(t, stage) {
      const { credential } = await stage.makeToken(stage.cast.owner, 'read')
      const url = stage.nextUrl
      const left = async (): Promise<number> =>
        Number(
          (await stage.act(credential, 'GET', '/api/projects', undefined, url)).headers.get(
            'x-ratelimit-remaining'
          )
        )
      const before = await left()
      const client = await stage.connect(credential)
      for (let n = 0; n < 150; n++) client.subscribe(`nowhere:${n}`)
      await stage.waits(() => client.frames.length === 150, 'all are refused')
      await client.close()
      t.equal(await left(), before - 2, 'the handshake and the request that asks')
    }
  }
]
