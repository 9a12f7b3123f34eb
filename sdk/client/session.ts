/**
 * The cookies of one session. A browser keeps them itself; there only the CSRF value is read, from the one
 * cookie that scripts may see.
 */
export class Session {
  readonly #cookies = new Map<string, string>()
  #renewals = 0
  #renewing: Promise<boolean> | undefined

  /** How often it has been renewed: a request that was sent before the latest time is to be sent again. */
  get renewals(): number {
    return this.#renewals
  }

  keep(response: Response): void {
    for (const line of response.headers.getSetCookie()) {
      const [pair = '', ...attributes] = line.split(';')
      const name = pair.slice(0, pair.indexOf('='))
      const value = pair.slice(pair.indexOf('=') + 1)
      if (value === '' || attributes.some(attribute => /^ *max-age=(0|-\d+) *$/i.test(attribute)))
        this.#cookies.delete(name)
      else this.#cookies.set(name, value)
    }
  }

  headers(isChange: boolean): Record<string, string> {
    const csrf = this.#cookies.get('csrf_token') ?? browserCookie('csrf_token')
    const cookie = [...this.#cookies].map(([name, value]) => `${name}=${value}`).join('; ')
    return {
      ...(cookie === '' ? {} : { cookie }),
      ...(isChange && csrf !== undefined ? { 'x-csrf-token': csrf } : {})
    }
  }

  /**
   * Renews the session that a request of so many renewals was refused with, unless another request has done so meanwhile.
   * However many requests are refused at once, it is asked for once: a refresh secret that is shown twice ends the session.
   */
  async renewed(renewalsAtSending: number, ask: () => Promise<boolean>): Promise<boolean> {
    if (this.#renewals > renewalsAtSending) return true
    if (!this.#cookies.has('refresh_token') && browserCookie('csrf_token') === undefined) return false
    this.#renewing ??= ask()
      .then(isRenewed => {
        if (isRenewed) this.#renewals++
        return isRenewed
      })
      .finally(() => {
        this.#renewing = undefined
      })
    return await this.#renewing
  }
}

function browserCookie(name: string): string | undefined {
  const { document } = globalThis as { document?: { readonly cookie: string } }
  return document?.cookie
    .split('; ')
    .find(pair => pair.startsWith(`${name}=`))
    ?.slice(name.length + 1)
}
