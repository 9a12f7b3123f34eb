import { isDeepStrictEqual } from 'node:util'
import {
  type Clock,
  type Contributions,
  type CredentialSource,
  type FoundCredential,
  type Log,
  type SignedInCaller,
  Turns
} from 'busbar/sdk'
import { withDeadline } from '../clock/waits.js'
import { type CredentialCache, isRevoked, type Revoked } from './credential-cache.js'

const findLimitMs = 15_000

/** A socket on `/api/ws` has the rights of its handshake: the contract lets a revoked token or a demoted user keep it. */
export const outlivedBySockets: readonly Revoked['kind'][] = ['role', 'token', 'project']

/** Something that stays open, and the credential it was opened with. */
interface Held {
  readonly caller: SignedInCaller
  readonly lost: () => void
  readonly outlives: readonly Revoked['kind'][]
  /** When it is to be asked again: at the credential's end, or at once when the look-up failed. */
  askAtMs: number
}

/**
 * Follows the credentials of what stays open: sockets and event streams, whose requests were let in once. They are
 * asked for by id: a session that is refreshed has another secret and goes on.
 */
export class CredentialWatch {
  readonly #held = new Set<Held>()
  /** Whose credential has ended, and who have not been notified. */
  readonly #ended = new Set<Held>()
  #isTelling = false
  readonly #turns = new Turns()
  /** One question for all that is open by the same credential. */
  readonly #asking = new Map<string, Promise<FoundCredential | undefined>>()

  constructor(
    private readonly parts: {
      readonly cache: CredentialCache
      readonly sources: Contributions<CredentialSource, 'identity'>
      readonly clock: Clock
      readonly log: Log
    }
  ) {
    parts.cache.watchers.add(revoked => {
      this.#changed(revoked)
    })
  }

  /**
   * Calls `lost`, once, when the credential has ended or gives other rights; returns how to stop. After a change that is
   * among `outlives` nothing is asked: what is open goes on by the identity it was opened with, until something else ends it.
   */
  hold(caller: SignedInCaller, lost: () => void, outlives: Held['outlives'] = []): () => void {
    const held: Held = { caller, lost, outlives, askAtMs: Infinity }
    this.#held.add(held)
    // It may have ended since the guard looked.
    void this.#ask(held)
    return () => {
      this.#held.delete(held)
      this.#ended.delete(held)
    }
  }

  /** Asks for those whose credential has come to its end: it may have been prolonged. */
  async askForExpired(): Promise<void> {
    const nowMs = this.parts.clock.now().getTime()
    await Promise.all([...this.#held].filter(({ askAtMs }) => askAtMs <= nowMs).map(held => this.#ask(held)))
  }

  #changed(revoked: Revoked): void {
    // What is being read may be from before.
    this.#asking.clear()
    for (const held of this.#held)
      if (isRevoked(held.caller, revoked) && !held.outlives.includes(revoked.kind)) void this.#ask(held)
  }

  async #ask(held: Held): Promise<void> {
    const { sources, clock, log } = this.parts
    const source = sources.get('identity')
    if (source === undefined) {
      // It is being reloaded; requests get 503 and may try again.
      held.askAtMs = 0
      return
    }
    try {
      const found = await this.#current(source, held.caller)
      const endsAtMs = found?.expiresAt?.getTime() ?? Infinity
      if (
        found === undefined ||
        endsAtMs <= clock.now().getTime() ||
        !hasSameRights(found.caller, held.caller)
      )
        this.#end(held)
      else held.askAtMs = endsAtMs
    } catch (error) {
      // What cannot be decided is refused.
      if (this.#held.has(held))
        log.error({ err: error }, 'the credential of an open stream could not be read')
      this.#end(held)
    }
  }

  #current(source: CredentialSource, caller: SignedInCaller): Promise<FoundCredential | undefined> {
    const id = caller.kind === 'token' ? `token:${caller.tokenId}` : `session:${caller.sessionId}`
    const running = this.#asking.get(id)
    if (running !== undefined) return running
    const asking = withDeadline(source.current(caller), findLimitMs, `looking up a ${caller.kind}`).finally(
      () => {
        if (this.#asking.get(id) === asking) this.#asking.delete(id)
      }
    )
    this.#asking.set(id, asking)
    return asking
  }

  #end(held: Held): void {
    if (!this.#held.delete(held)) return
    this.#ended.add(held)
    if (!this.#isTelling) void this.#tell()
  }

  /** To end what is open takes time, and a user may have much open by one credential. */
  async #tell(): Promise<void> {
    this.#isTelling = true
    for (const held of this.#ended) {
      if (this.#turns.isOver) await this.#turns.pass()
      if (!this.#ended.delete(held)) continue
      try {
        held.lost()
      } catch (error) {
        this.parts.log.error({ err: error }, 'an open stream could not be ended')
      }
    }
    this.#isTelling = false
  }
}

/** Names may change, and the order of pins. */
const hasSameRights = (a: SignedInCaller, b: SignedInCaller): boolean =>
  isDeepStrictEqual(rightsOf(a), rightsOf(b))
const rightsOf = (caller: SignedInCaller) => [
  caller.user.role,
  caller.kind === 'token' ? [caller.scope, caller.pins && [...caller.pins].sort()] : caller.mustEnroll
]
