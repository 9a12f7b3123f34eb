import { IncomingMessage, ServerResponse } from 'node:http'
import type { Socket } from 'node:net'
import { isTooFarAhead } from './request-turns.js'
import { ChunkCount, refuseRest } from './tiny-chunks.js'

const asked = Symbol('asks for an upgrade')
const chunks = Symbol('chunks of the body')
const isRefused = Symbol('the rest of the body is refused')

/**
 * The request class of a server of HTTP/1.1 that takes upgrades and lets requests begin by `inTurn`, for `createServer({ IncomingMessage: Http1Request })`.
 * An offer to change to HTTP/2 (`Upgrade: h2c`, which some clients put on every first request) is ignored, as
 * RFC 9110 7.8 allows, and so is every one in HTTP/1.0, as it demands: they reach the listeners of `request`.
 * Node hands them to those of `upgrade`, without their body. The parser of Node ends with such a request, so the
 * answer must end the connection: see `isLastRequest`.
 *
 * A request beyond what its connection may send ahead is taken for an upgrade, which ends the connection as it is behind
 * another request. For nothing else does Node's parser stop: it would make a request of all it has read, thousands of them.
 *
 * A body in too many tiny chunks ends the connection, with 400 where an answer has not begun: see `ChunkCount`.
 */
export class Http1Request extends IncomingMessage {
  private declare [asked]: boolean | undefined
  private declare [chunks]: ChunkCount | undefined
  private declare [isRefused]: boolean | undefined

  /** Node sets it before it has read the headers, and asks for it after. */
  get upgrade(): boolean {
    return (this[asked] === true && !isLastRequest(this)) || isTooFarAhead(this.socket)
  }

  set upgrade(value: boolean | null) {
    this[asked] = value === true
  }

  /** Node's parser calls it for each chunk of the body, and with null at its end. */
  override push(chunk: Buffer | null): boolean {
    if (this[isRefused] === true) return false
    if (chunk === null) return super.push(null)
    this[chunks] ??= new ChunkCount()
    if (!this[chunks].isTooFine(this.socket.bytesRead, chunk.length)) return super.push(chunk)
    this[isRefused] = true
    refuseRest(this)
    return false
  }
}

/** Headers that a message may have. Some hundred are many; each costs more than its bytes. */
export const maxHeaders = 200

/**
 * True for a message to refuse: Node hides headers after `maxHeadersCount` from us, and obeys them all the same. Set that
 * to `maxHeaders + 1`, and Node keeps no more of them than it takes to know.
 */
export const hasTooManyHeaders = ({ rawHeaders }: IncomingMessage): boolean =>
  rawHeaders.length > 2 * maxHeaders

/** The connection can take no further request: set `shouldKeepAlive` of the response to false. */
export function isLastRequest({ headers, httpVersion }: IncomingMessage): boolean {
  return headers.upgrade !== undefined && (httpVersion === '1.0' || offersOnly(headers.upgrade, 'h2c'))
}

const offersOnly = (upgrade: string, protocol: string): boolean =>
  upgrade.split(',').every(offer => offer.trim().toLowerCase() === protocol)

/**
 * True while an earlier request on the connection of an upgrade still waits for its answer (pipelining). Node hands
 * the upgrade over at once; the connection is to be closed, as nothing can be answered in its turn any more.
 */
export function hasEarlierRequest(request: IncomingMessage, socket: Socket): boolean {
  const probe = new ServerResponse(request)
  try {
    // It refuses a socket that another response holds.
    probe.assignSocket(socket)
    probe.detachSocket(socket)
    return false
  } catch {
    return true
  }
}

/**
 * What is invalid in the head of a request by RFC 9112 though Node's parser takes it, in words; null when nothing
 * is. It is to be answered with 400, and the connection closed. Node itself would ask for a `Host` in requests
 * that want no upgrade only, with an answer that takes no turn (so its `requireHostHeader` is to be off), and of several
 * it tells the first.
 */
export function headFault({ rawHeaders, headers, httpVersion }: IncomingMessage): string | null {
  let hosts = 0
  for (let index = 0; index < rawHeaders.length; index += 2) {
    const name = rawHeaders[index]
    if (name?.length === 4 && name.toLowerCase() === 'host') hosts += 1
  }
  if (hosts > 1) return 'there is more than one Host header'
  if (hosts === 0 && httpVersion !== '1.0') return 'there is no Host header'
  if (headers.host !== undefined && !hostForm.test(headers.host))
    return 'the Host header is neither a name nor an address with an optional port'
  if (httpVersion === '1.0' && headers['transfer-encoding'] !== undefined)
    return 'HTTP/1.0 has no transfer codings'
  return null
}

const hostForm = /^(?:[\w.~%-]+|\[[\da-f:.]+\])(?::\d{0,5})?$/i
