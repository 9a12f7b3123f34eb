import { addressOf } from './address.js'
import { ApiError } from './api-error.js'
import { Applications } from './applications.js'
import { Deployments } from './deployments.js'
import { networkErrorOf } from './network-error.js'
import { operationKeys } from './operations.generated.js'
import { platformUrl } from './platform-url.js'
import { Projects } from './projects.js'
import { retryDelayMs, sleep } from './retry.js'
import { Session } from './session.js'
import type { Item, Method, Of, OperationCalls, Path, Rest } from './types.js'

export interface ClientOptions {
  /** Where the platform is, without `/api`: `http://127.0.0.1:8080`. In a browser `''` is the page's own. */
  readonly url: string
  /** A personal access token. Without it and without `signIn` only public operations answer, in a browser those of its session too. */
  readonly token?: string
  /** The milliseconds a request may take, unless it brings a signal of its own; 30 000 unless set. */
  readonly timeoutMs?: number
  /**
   * How many milliseconds a call may wait in all to be sent again, when the platform refuses it for now and says when to come
   * again: 429 (it was not carried out), 503 of what may be repeated, and 409 while the first request with the same
   * `idempotencyKey` is still being answered. 65 000 unless set; 0 for never.
   */
  readonly maxRetryWaitMs?: number
  readonly fetch?: typeof fetch
}

interface SignIn {
  readonly email: string
  readonly password: string /** Where a second factor is set up. */
  readonly code?: string
}

interface Sent {
  readonly params?: object
  readonly query?: object
  readonly body?: unknown
  readonly signal?: AbortSignal
  readonly headers?: Readonly<Record<string, string>>
  readonly idempotencyKey?: string
}

type Call<M extends Method> = <P extends Path<M>>(
  path: P,
  ...rest: Rest<Of<M, P>>
) => Promise<Of<M, P>['answer']>
type Each = <P extends Path<'GET'>>(
  path: P,
  ...rest: Rest<Of<'GET', P>>
) => AsyncGenerator<Item<Of<'GET', P>['answer']>>
type Fetch = <M extends Method, P extends Path<M>>(
  method: M,
  path: P,
  ...rest: Rest<Of<M, P>>
) => Promise<Response>

/** What one question of `each` asks for. */
const pageSize = 100
/** A 401 of these is about what they are given, not about the session. */
const signsIn = /^\/api\/auth\/(login|refresh|logout|reset-password|accept-invitation)/

export const createClient = (options: ClientOptions): BusbarClient => new BusbarClient(options)

/** One caller of the API. Every method throws an `ApiError` when the answer is no success. */
export class BusbarClient {
  readonly url: string

  constructor(
    readonly options: ClientOptions,
    readonly session: Session = new Session()
  ) {
    this.url = platformUrl(options.url)
  }

  readonly get = this.#caller('GET')
  readonly post = this.#caller('POST')
  readonly put = this.#caller('PUT')
  readonly patch = this.#caller('PATCH')
  readonly delete = this.#caller('DELETE')

  /** The operations by their names, each with what it does: `busbar.operations.CreateProject({ body })`. */
  readonly operations = Object.fromEntries(
    Object.entries(operationKeys).map(([name, key]) => {
      const [method, path] = key.split(' ') as [Method, string]
      return [name, async (sent?: Sent) => await this.#data(method, path, sent)]
    })
  ) as unknown as OperationCalls

  /** Projects, by themselves and by what they hold. */
  readonly projects = new Projects(this)
  /** Applications: make, deploy and delete them. */
  readonly applications = new Applications(this)
  /** Deployments: follow their logs, and wait for their ends. */
  readonly deployments = new Deployments(this)

  /** Every item of a list that takes `limit` and `offset`, a page at a time, as they are asked for. */
  readonly each = this.#each.bind(this) as unknown as Each

  /** The response itself, whatever its status: for headers, streams and files. */
  readonly fetch = (async (method: Method, path: string, options?: Sent) =>
    await this.#send(method, path, options ?? {})) as Fetch

  /** A client of the same platform for another user: with a session of its own. */
  async signIn({ email, password, code }: SignIn): Promise<BusbarClient> {
    const { token: _token, ...options } = this.options
    const person = new BusbarClient(options)
    const answer = (await person.#data('POST', '/api/auth/login', { body: { email, password } })) as {
      challenge?: string
    }
    if (answer.challenge !== undefined && code === undefined) {
      throw new ApiError(
        'POST /api/auth/login',
        401,
        'E_SECOND_FACTOR_REQUIRED',
        'this account has a second factor: give its code',
        answer,
        undefined,
        undefined
      )
    }
    if (answer.challenge !== undefined)
      await person.#data('POST', '/api/auth/login/verify', { body: { challenge: answer.challenge, code } })
    return person
  }

  /** The same platform with a personal access token. */
  withToken(token: string): BusbarClient {
    return new BusbarClient({ ...this.options, token })
  }

  /** The headers that carry the credential, for what is no request of this client: a WebSocket. */
  credential(): Readonly<Record<string, string>> {
    const { token } = this.options
    return token === undefined ? this.session.headers(false) : { authorization: `Bearer ${token}` }
  }

  #caller<M extends Method>(method: M): Call<M> {
    return (async (path: string, options?: Sent) =>
      await this.#data(method, path, options)) as unknown as Call<M>
  }

  async *#each(path: string, { query = {}, ...rest }: Sent = {}): AsyncGenerator<unknown> {
    for (let offset = 0; ; ) {
      const page = { ...query, limit: String(pageSize), offset: String(offset) }
      const response = await this.#send('GET', path, { ...rest, query: page })
      const answer = await this.#read('GET', path, response, rest.signal)
      const { items, total } = Array.isArray(answer)
        ? { items: answer as unknown[], total: response.headers.get('x-total-count') }
        : (answer as { items: unknown[]; total?: number })
      yield* items
      offset += items.length
      // A list may have smaller pages than were asked for.
      if (items.length === 0 || offset >= Number(total ?? Number.NaN)) return
    }
  }

  async #data(method: Method, path: string, sent: Sent | undefined): Promise<unknown> {
    return await this.#read(method, path, await this.#send(method, path, sent ?? {}), sent?.signal)
  }

  /** What an answer says. One that breaks off, or does not end in time, is none. */
  async #read(method: Method, path: string, response: Response, signal?: AbortSignal): Promise<unknown> {
    try {
      if (!response.ok) throw await ApiError.from(`${method} ${path}`, response)
      const type = response.headers.get('content-type') ?? ''
      if (type.includes('application/json')) return await response.json()
      // No operation answers a page: it is that of a proxy, where people sign in.
      if (type.includes('text/html')) throw await ApiError.from(`${method} ${path}`, response)
      if (type !== '') return response
      await response.body?.cancel()
      return undefined
    } catch (error) {
      if (error instanceof ApiError || signal?.aborted === true) throw error
      throw networkErrorOf(method, this.url, path, error)
    }
  }

  /** Sends it, and again where that is safe: with the session renewed, or when the platform says that it has time. */
  async #send(method: Method, path: string, sent: Sent): Promise<Response> {
    const { token, maxRetryWaitMs = 65_000 } = this.options
    const hasIdempotencyKey = sent.idempotencyKey !== undefined
    let mayRenew = token === undefined && !signsIn.test(path)
    for (let retries = 0, waitedMs = 0; ; ) {
      const { renewals } = this.session
      const response = await this.#attempt(method, path, sent)
      if (mayRenew && (await isSessionOver(response))) {
        mayRenew = false
        if (!(await this.session.renewed(renewals, async () => await this.#renew()))) return response
        await response.body?.cancel()
        continue
      }
      const delayMs = retryDelayMs(response, { method, hasIdempotencyKey, retries, waitedMs }, maxRetryWaitMs)
      if (delayMs === undefined) return response
      await response.body?.cancel()
      await sleep(delayMs, sent.signal)
      retries++
      waitedMs += delayMs
    }
  }

  async #renew(): Promise<boolean> {
    const response = await this.#send('POST', '/api/auth/refresh', {})
    await response.body?.cancel()
    return response.ok
  }

  async #attempt(
    method: Method,
    path: string,
    { params = {}, query = {}, body, signal, headers, idempotencyKey }: Sent
  ): Promise<Response> {
    const { token, timeoutMs = 30_000, fetch: send = fetch } = this.options
    const isChange = method !== 'GET'
    const isText = typeof body === 'string' || body instanceof Uint8Array
    const address = this.url + addressOf(path, params, query)
    const request = {
      method,
      headers: {
        ...(token === undefined ? this.session.headers(isChange) : { authorization: `Bearer ${token}` }),
        ...(body === undefined || isText ? {} : { 'content-type': 'application/json' }),
        ...(idempotencyKey === undefined ? {} : { 'idempotency-key': idempotencyKey }),
        // In whatever case they are given, they take the place of those above.
        ...Object.fromEntries(
          Object.entries(headers ?? {}).map(([name, value]) => [name.toLowerCase(), value])
        )
      },
      body: body === undefined ? undefined : isText ? (body as string) : JSON.stringify(body),
      signal: signal ?? AbortSignal.timeout(timeoutMs),
      redirect: 'manual' as const
    }
    try {
      const response = await send(address, request)
      if (token === undefined) this.session.keep(response)
      return response
    } catch (error) {
      // Who ends a request knows why.
      if (signal?.aborted === true) throw error
      throw networkErrorOf(method, this.url, path, error)
    }
  }
}

/** The secret of a session that has run out is not valid any more; a browser does not send it at all. */
const sessionOver: readonly string[] = ['E_TOKEN_INVALID', 'E_UNAUTHORIZED']

/** A 401 of anything else, as a wrong password, is the answer of the operation. */
async function isSessionOver(response: Response): Promise<boolean> {
  if (response.status !== 401) return false
  return sessionOver.includes((await ApiError.from('', response.clone())).code)
}
