import { IncomingMessage } from 'node:http'

const asked = Symbol('asks for an upgrade')

/**
 * The request class of a server of HTTP/1.1 that takes upgrades, for `createServer({ IncomingMessage: Http1Request })`.
 * An offer to change to HTTP/2 (`Upgrade: h2c`, which some clients put on every first request) is ignored, as
 * RFC 9110 7.8 allows: it reaches the listeners of `request`. Node hands it to those of `upgrade`, without its body.
 * The parser of Node ends with such a request, so the answer must end the connection: see `isLastRequest`.
 */
export class Http1Request extends IncomingMessage {
  declare private [asked]: boolean | undefined

  /** Node sets it before it has read the headers, and asks for it after. */
  get upgrade (): boolean {
    return this[asked] === true && !isLastRequest(this)
  }

  set upgrade (value: boolean | null) {
    this[asked] = value === true
  }
}

/** The connection can take no further request: set `shouldKeepAlive` of the response to false. */
export function isLastRequest ({ headers }: IncomingMessage): boolean {
  return headers.upgrade !== undefined && headers.upgrade.toLowerCase() === 'h2c'
}
