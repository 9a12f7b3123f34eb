import {
  type IncomingMessage,
  type OutgoingHttpHeader,
  type OutgoingHttpHeaders,
  ServerResponse
} from 'node:http'

/**
 * An answer whose usual headers wait until the head is written. Node stores a header that is set by
 * itself in three places; with nine of them that was a tenth of what a request cost.
 */
export class PlatformResponse<
  Request extends IncomingMessage = IncomingMessage
> extends ServerResponse<Request> {
  // Two lists and no map, which takes longer to fill than it saves with so few.
  readonly #names: string[] = []
  readonly #values: string[] = []

  wait(name: string, value: string): void {
    const at = this.#names.indexOf(name)
    if (at >= 0) this.#values[at] = value
    else {
      this.#names.push(name)
      this.#values.push(value)
    }
  }

  /** Adds to what waits of a header that is a list. */
  extend(name: string, value: string): void {
    const at = this.#names.indexOf(name)
    if (at < 0) this.wait(name, value)
    else this.#values[at] = `${this.#values[at] ?? ''}, ${value}`
  }

  override writeHead(
    status: number,
    first?: string | OutgoingHttpHeaders | OutgoingHttpHeader[],
    second?: OutgoingHttpHeaders | OutgoingHttpHeader[]
  ): this {
    const names = this.#names
    const values = this.#values
    if (
      first === undefined ||
      typeof first === 'string' ||
      Array.isArray(first) ||
      this.getHeaderNames().length > 0
    ) {
      for (const [at, name] of names.entries())
        if (!this.hasHeader(name)) this.setHeader(name, values[at] ?? '')
      return typeof first === 'string'
        ? super.writeHead(status, first, second)
        : super.writeHead(status, first)
    }
    const list: OutgoingHttpHeader[] = []
    for (let at = 0; at < names.length; at++) {
      const name = names[at] ?? ''
      if (first[name] === undefined) list.push(name, values[at] ?? '')
    }
    for (const name in first) {
      const value = first[name]
      if (value !== undefined) list.push(name, value)
    }
    return super.writeHead(status, list)
  }
}

/** A header, its name in lowercase, that gives way to one of the same name set until the head is written. */
export function setDefaultHeader(response: ServerResponse, name: string, value: string): void {
  if (response instanceof PlatformResponse) response.wait(name, value)
  else response.setHeader(name, value)
}

/** Says that the answer goes by a header of the request too, its name as it is to be read. */
export function addVary(response: ServerResponse, header: string): void {
  if (response instanceof PlatformResponse) response.extend('vary', header)
  else response.appendHeader('vary', header)
}
