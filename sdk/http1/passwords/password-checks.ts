import { createHash, createHmac, randomBytes, timingSafeEqual } from 'node:crypto'
import type { IncomingMessage } from 'node:http'
import { networkOf } from '../../address.js'
import { FairQueue } from '../../fair-queue.js'
import type { OwnAnswer } from '../forwarding/route.js'
import { TokenBuckets, tooMany } from '../token-buckets.js'
import { readBasicCredentials } from './basic-credentials.js'

/** Who may pass. */
export interface PasswordAccount {
  readonly username: string
  /** By bcrypt. */
  readonly hashedPassword: string
}

/** A request to something with a password. */
interface Visit {
  /** Of the client, behind proxies that are believed. */
  readonly address: string
  /** Its socket is looked at for whether somebody still waits. */
  readonly request: Pick<IncomingMessage, 'headers' | 'socket'>
}

/** What it is answered; undefined where it may pass. Does not reject. */
type Check = (visit: Visit) => OwnAnswer | undefined | Promise<OwnAnswer | undefined>

type Verify = (password: string, hash: string) => Promise<boolean>
type Outcome = 'right' | 'wrong' | 'gone'

/** One at a time: a hash may take a second of a processor, and there are others who need one. */
const limits = { most: 1, maxPerOwner: 1 }
/** Of one route. */
const mostWaiting = 20
/** What a client may have verified: ten at once, and one more every two seconds. What is known already costs nothing of it. */
const attempts = { capacity: 10, perMs: 1 / 2000 }
const mostClients = 20_000
const mostKnown = 20_000

const challenge: OwnAnswer = {
  status: 401,
  sentence: 'A name and a password are needed here.',
  headers: { 'WWW-Authenticate': 'Basic realm="restricted", charset="UTF-8"' }
}
const busy: OwnAnswer = {
  status: 503,
  sentence: 'Too many passwords are being checked. Try again in a moment.',
  headers: { 'Retry-After': '2' }
}

/**
 * Checks passwords for routes. A hash is slow on purpose, so each pair of name and password is verified once, on another thread,
 * and remembered by a keyed digest, right or wrong. What a client may have verified has a limit, routes take turns, and a
 * request whose client has gone is not verified at all.
 */
export class PasswordChecks {
  readonly #key = randomBytes(32)
  /** By digest, in the order of their last use. */
  readonly #known = new Map<string, boolean>()
  readonly #running = new Map<string, Promise<Outcome>>()
  readonly #attempts = new TokenBuckets(mostClients)
  readonly #turns = new FairQueue(limits)
  readonly #begin = new Map<string, () => void>()
  /** By the id of a route. */
  readonly #waiting = new Map<string, number>()

  constructor(
    private readonly now: () => number,
    private readonly verify: Verify
  ) {}

  check(routeId: string, wanted: PasswordAccount): Check {
    return visit => {
      const given = readBasicCredentials(visit.request.headers.authorization)
      if (given === undefined) return challenge
      const digest = createHmac('sha256', this.#key)
        .update(JSON.stringify([wanted.hashedPassword, wanted.username, given.username, given.password]))
        .digest('base64url')
      const known = this.#recall(digest)
      if (known !== undefined) return known ? undefined : challenge
      const running = this.#running.get(digest)
      if (running !== undefined) return running.then(answerOf)
      const waitMs = this.#attempts.take('', networkOf(visit.address), attempts, this.now())
      if (waitMs > 0) return tooMany(waitMs)
      if ((this.#waiting.get(routeId) ?? 0) >= mostWaiting) return busy
      const isUser = isSame(given.username, wanted.username)
      const outcome = this.#inTurn(routeId, digest, visit, async () => {
        // Whatever the name is, so that the time does not tell which one is right.
        const isPassword = await this.verify(given.password, wanted.hashedPassword)
        return isUser && isPassword
      })
      this.#running.set(digest, outcome)
      return outcome.then(answerOf)
    }
  }

  async #inTurn(
    routeId: string,
    digest: string,
    { request }: Visit,
    work: () => Promise<boolean>
  ): Promise<Outcome> {
    const turn = { owner: routeId, id: digest }
    this.#waiting.set(routeId, (this.#waiting.get(routeId) ?? 0) + 1)
    try {
      const begun = new Promise<void>(resolve => this.#begin.set(digest, resolve))
      this.#turns.add(turn)
      this.#next()
      await begun
      if (request.socket.destroyed) return 'gone'
      const isRight = await work()
      this.#remember(digest, isRight)
      return isRight ? 'right' : 'wrong'
    } catch {
      // It was not verified: nobody is let in, and nothing is remembered.
      return 'gone'
    } finally {
      this.#running.delete(digest)
      const left = (this.#waiting.get(routeId) ?? 1) - 1
      if (left > 0) this.#waiting.set(routeId, left)
      else this.#waiting.delete(routeId)
      this.#turns.end(turn)
      this.#next()
    }
  }

  #next(): void {
    const turn = this.#turns.take()
    if (turn === undefined) return
    const begin = this.#begin.get(turn.id)
    this.#begin.delete(turn.id)
    begin?.()
  }

  #recall(digest: string): boolean | undefined {
    const known = this.#known.get(digest)
    if (known === undefined) return undefined
    this.#known.delete(digest)
    this.#known.set(digest, known)
    return known
  }

  #remember(digest: string, isRight: boolean): void {
    if (this.#known.size >= mostKnown) {
      const [oldest = ''] = this.#known.keys()
      this.#known.delete(oldest)
    }
    this.#known.set(digest, isRight)
  }
}

function answerOf(outcome: Outcome): OwnAnswer | undefined {
  if (outcome === 'right') return undefined
  // Others may have asked the same as who has gone.
  return outcome === 'wrong' ? challenge : busy
}

/** In a time that does not tell where they differ. */
const isSame = (a: string, b: string): boolean => timingSafeEqual(digestOf(a), digestOf(b))
const digestOf = (text: string): Buffer => createHash('sha256').update(text).digest()
