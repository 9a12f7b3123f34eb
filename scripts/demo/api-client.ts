/** An answer that is no success: the platform's own words. */
export class ApiError extends Error {
  constructor (readonly status: number, readonly code: string, request: string, message: string) {
    super(`${request} answered ${status} ${code}: ${message}`)
  }
}

/** The public API, as any client sees it: JSON over HTTP with a credential in the headers. */
export class ApiClient {
  constructor (readonly url: string, readonly headers: Readonly<Record<string, string>> = {}) {}

  async get<T> (path: string): Promise<T> { return await this.#send<T>('GET', path) }
  async post<T> (path: string, body?: object): Promise<T> { return await this.#send<T>('POST', path, body) }
  async delete<T> (path: string): Promise<T> { return await this.#send<T>('DELETE', path) }

  /** Signs in as a person: the cookies of a session, and the header that proves requests are meant. */
  async signIn (email: string, password: string): Promise<ApiClient> {
    const response = await this.#fetch('POST', '/api/auth/login', { email, password })
    const cookies = response.headers.getSetCookie().map(cookie => cookie.split(';')[0] ?? '')
    const csrf = cookies.find(cookie => cookie.startsWith('csrf_token='))?.slice('csrf_token='.length) ?? ''
    return new ApiClient(this.url, { cookie: cookies.join('; '), 'x-csrf-token': csrf })
  }

  withToken (token: string): ApiClient { return new ApiClient(this.url, { authorization: `Bearer ${token}` }) }

  async #send<T> (method: string, path: string, body?: object): Promise<T> {
    const response = await this.#fetch(method, path, body)
    return await response.json() as T
  }

  async #fetch (method: string, path: string, body?: object): Promise<Response> {
    const response = await fetch(this.url + path, {
      method,
      headers: { ...this.headers, ...(body === undefined ? {} : { 'content-type': 'application/json' }) },
      body: body === undefined ? undefined : JSON.stringify(body),
      signal: AbortSignal.timeout(30_000)
    })
    if (response.ok) return response
    const text = await response.text()
    const { error = text, code = '' } = parse(text)
    throw new ApiError(response.status, code, `${method} ${path}`, error)
  }
}

function parse (text: string): { error?: string, code?: string } {
  try {
    return JSON.parse(text) as { error?: string, code?: string }
  } catch {
    return {}
  }
}
