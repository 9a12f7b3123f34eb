import { randomBytes } from 'node:crypto'
import { until } from 'busbar/sdk/testing'
import { type Installation, setupCode } from './installation.js'
import { LiveClient } from './live-client.js'

const password = 'correct horse battery'

/** Where a claim acts, and where it listens: indexes of processes. Its sockets are opened at the latter in turn. */
export interface Placement {
  readonly name: string
  readonly acting: number
  readonly listening: readonly number[]
}

interface Answer {
  readonly status: number
  readonly body: any
  readonly headers: Headers
}

/** What somebody sends along to be known. */
export type Credential = Readonly<Record<string, string>>

interface Person {
  readonly id: string
  readonly email: string
  readonly session: Credential
}

interface Cast {
  readonly admin: Person
  /** A member with a project and an application in it. */
  readonly owner: Person
  /** A member who has nothing. */
  readonly stranger: Person
}

interface Possessions {
  readonly projectId: string
  readonly applicationId: string
}

/** An installation with people in it, who do everything by HTTP and listen with plain sockets. */
export class Stage {
  readonly #opened: LiveClient[] = []
  #turn = 0

  private constructor(
    readonly installation: Installation,
    readonly cast: Cast,
    readonly of: Possessions,
    readonly placement: Placement
  ) {}

  static async set(installation: Installation): Promise<Stage> {
    const [first] = installation.processes
    if (first === undefined) throw new Error('an installation has a process')
    const send = sender(first.url)
    expect(
      await send(
        'POST',
        '/api/auth/setup',
        {},
        { ...account('admin'), instance_name: 'Stage', code: setupCode }
      ),
      201
    )
    const admin = await signIn(first.url, 'admin')
    for (const name of ['owner', 'stranger'])
      expect(await send('POST', '/api/users', admin.session, { ...account(name), role: 'member' }), 201)
    const cast = {
      admin,
      owner: await signIn(first.url, 'owner'),
      stranger: await signIn(first.url, 'stranger')
    }
    expect(await send('POST', '/api/plugins/speaker/enable', admin.session, {}), 200)
    for (const { url } of installation.processes)
      await until(
        async () => (await sender(url)('GET', '/api/x/speaker/sources', admin.session)).status === 200,
        'the plugin runs in every process'
      )
    const stage = new Stage(
      installation,
      cast,
      { projectId: '', applicationId: '' },
      {
        name: 'setting',
        acting: 0,
        listening: [0]
      }
    )
    return new Stage(installation, cast, await stage.makeProject(cast.owner), stage.placement)
  }

  /** The same people, elsewhere. */
  at(placement: Placement): Stage {
    return new Stage(this.installation, this.cast, this.of, placement)
  }

  get actingUrl(): string {
    return this.#url(this.placement.acting)
  }
  /** That of the process at which the next socket is opened. */
  get nextUrl(): string {
    const { listening } = this.placement
    return this.#url(listening[this.#turn % listening.length] ?? 0)
  }
  get listeningUrls(): readonly string[] {
    return this.placement.listening.map(at => this.#url(at))
  }

  /** Whether nobody is let in by it, at no process. */
  async isRefusedEverywhere(who: Credential): Promise<boolean> {
    for (const { url } of this.installation.processes)
      if ((await this.act(who, 'GET', '/api/auth/me', undefined, url)).status !== 401) return false
    return true
  }

  /** By HTTP, at the acting process. */
  async act(
    who: Credential,
    method: string,
    path: string,
    body?: object,
    url = this.actingUrl
  ): Promise<Answer> {
    return await sender(url)(method, path, who, body)
  }

  /** A new user, signed in. */
  async makeUser(role: 'admin' | 'member'): Promise<Person> {
    const name = unique('user')
    expect(await this.act(this.cast.admin.session, 'POST', '/api/users', { ...account(name), role }), 201)
    return await signIn(this.actingUrl, name)
  }

  async makeProject(who: Person): Promise<Possessions> {
    const slug = unique('stage')
    const project = expect(await this.act(who.session, 'POST', '/api/projects', { name: slug, slug }), 201)
    const application = expect(
      await this.act(who.session, 'POST', `/api/projects/${project.body.id as string}/applications`, {
        name: 'web',
        type: 'image',
        build_type: 'image',
        source_image: 'busybox:lab'
      }),
      201
    )
    return { projectId: project.body.id, applicationId: application.body.id }
  }

  /** A new token of somebody; its id, and what it sends. */
  async makeToken(
    who: Person,
    scope: string,
    pins?: readonly string[]
  ): Promise<{ readonly id: string; readonly credential: Credential }> {
    const { body } = expect(
      await this.act(who.session, 'POST', '/api/tokens', {
        name: unique('token'),
        scopes: [scope],
        ...(pins !== undefined && { project_ids: pins })
      }),
      201
    )
    return { id: body.id, credential: { authorization: `Bearer ${body.token as string}` } }
  }

  /** A socket at one of the listening processes, in turn. */
  async connect(who: Credential, options: Parameters<typeof LiveClient.open>[2] = {}): Promise<LiveClient> {
    const url = this.nextUrl
    this.#turn++
    const client = await LiveClient.open(url, who, options)
    this.#opened.push(client)
    return client
  }

  /** Publishes at the acting process. */
  async say(channel: string, data: unknown, event = 'said'): Promise<void> {
    expect(
      await this.act(this.cast.owner.session, 'POST', '/api/x/speaker/say', { channel, event, data }),
      200
    )
  }

  /** Publishes numbered messages of that many characters. */
  async sayNumbered(channel: string, from: number, count: number, characters: number): Promise<void> {
    expect(
      await this.act(this.cast.owner.session, 'POST', '/api/x/speaker/say', {
        channel,
        event: 'said',
        data: null,
        numbered: { from, count, characters }
      }),
      200
    )
  }

  /** Subscribes, and says words until they are heard: that is all by which a client can tell that it has subscribed. */
  async hears(client: LiveClient, ...channels: readonly string[]): Promise<void> {
    client.subscribe(...channels)
    for (const channel of channels) await this.stillHears(client, channel)
  }

  async stillHears(client: LiveClient, channel: string): Promise<void> {
    const word = unique('word')
    let last = 0
    const heard = (n?: number): boolean =>
      client.on(channel).some(({ data }) => typeof data === 'string' && data.startsWith(`${word} ${n ?? ''}`))
    await until(async () => {
      if (client.end !== undefined) throw new Error(`the socket was closed with ${client.end.code}`)
      if (client.on(channel).some(({ event }) => event === 'error')) throw new Error(`${channel} was refused`)
      if (heard()) return true
      await this.say(channel, `${word} ${++last}`)
      return heard()
    }, `${channel} is heard`)
    // What was said meanwhile is still on its way.
    await until(() => heard(last), `${channel} is heard to the last word`)
  }

  /** Says a word on another channel that the client hears too: what was said before it on this one has come by then. */
  async nothingMore(client: LiveClient, channel: string, otherwise: string): Promise<void> {
    const before = client.on(channel).length
    await this.say(channel, unique('unheard'))
    await this.stillHears(client, otherwise)
    const come = client.on(channel).slice(before)
    if (come.length > 0) throw new Error(`${channel} is still heard: ${JSON.stringify(come)}`)
  }

  async waits(probe: () => boolean | Promise<boolean>, what: string): Promise<void> {
    await until(probe, what)
  }

  /** A figure of `GET /metrics`, at a process. */
  async figure(name: string, url: string): Promise<number> {
    const { body } = await this.act(this.cast.admin.session, 'GET', '/metrics', undefined, url)
    return Number(new RegExp(`^${name} (.*)$`, 'm').exec(String(body))?.[1] ?? Number.NaN)
  }

  async clear(): Promise<void> {
    for (const client of this.#opened) client.socket.terminate()
    for (const client of this.#opened) await client.closed()
  }

  #url(at: number): string {
    const { url } = this.installation.processes[at] ?? {}
    if (url === undefined) throw new Error(`there is no process ${at}`)
    return url
  }
}

const account = (name: string) => ({ email: `${name}@example.com`, username: name, password })

let addresses = 0
/** From an address of its own, as a proxy tells it: few may sign in from one within a minute. */
async function signIn(url: string, name: string): Promise<Person> {
  const from = { 'x-forwarded-for': `10.0.0.${(addresses++ % 250) + 1}` }
  const { body, headers } = expect(await sender(url)('POST', '/api/auth/login', from, account(name)), 200)
  return { id: body.user.id, email: account(name).email, session: cookiesOf(headers) }
}

export const unique = (word: string): string => `${word}-${randomBytes(5).toString('hex')}`

export function expect(answer: Answer, status: number): Answer {
  if (answer.status !== status)
    throw new Error(`answered ${answer.status} instead of ${status}: ${JSON.stringify(answer.body)}`)
  return answer
}

const sender =
  (url: string) =>
  async (method: string, path: string, who: Credential, body?: object): Promise<Answer> => {
    const response = await fetch(url + path, {
      method,
      headers: { ...who, ...(body !== undefined && { 'content-type': 'application/json' }) },
      ...(body !== undefined && { body: JSON.stringify(body) })
    })
    const text = await response.text()
    const isJson = response.headers.get('content-type')?.startsWith('application/json') === true
    return { status: response.status, body: isJson ? JSON.parse(text) : text, headers: response.headers }
  }

function cookiesOf(headers: Headers): Credential {
  const cookies = headers.getSetCookie().map(line => line.split(';')[0] ?? '')
  const csrf = cookies.find(cookie => cookie.startsWith('csrf_token='))?.slice('csrf_token='.length) ?? ''
  return { cookie: cookies.join('; '), 'x-csrf-token': csrf }
}
