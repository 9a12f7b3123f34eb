import type { Socket } from 'node:net'
import { TurnQueue } from '../turn-queue.js'
import { clientKey } from './client-key.js'

/** What is handed on in one turn of the event loop, by all of the process together: some milliseconds of it. */
const bytesPerTurn = 1024 * 1024
/** What one read of a socket brings. Node reads a socket up to 32 times before it looks at another one. */
const bytesPerRead = 64 * 1024

/** Those that have come when the turn was used up. */
const held = new TurnQueue()
let spent = 0
let isPlanned = false

/**
 * The turns of one who hands on bytes of a client's connection, or bytes for it. Those of one client take turns like one, and
 * those that have handed on little since their last turn go first.
 */
export class ByteTurns {
  readonly #owner: unknown
  #ofTurn = 0

  constructor(client: Socket) {
    this.#owner = clientKey(client) ?? client
  }

  /** Counts what is handed on, and says whether this turn is used up with that: `wait` before there is more. */
  isUsedUp(bytes: number): boolean {
    this.#ofTurn += bytes
    spent += bytes
    plan()
    return spent >= bytesPerTurn
  }

  wait(goOn: () => void): void {
    held.add({ owner: this.#owner, hasUsedTurn: this.#ofTurn >= bytesPerRead, goOn })
    this.#ofTurn = 0
    plan()
  }
}

function plan(): void {
  if (isPlanned) return
  isPlanned = true
  setImmediate(beginTurn)
}

function beginTurn(): void {
  isPlanned = false
  spent = 0
  try {
    for (let bytes = 0; bytes < bytesPerTurn && !held.isEmpty; bytes += bytesPerRead) held.take()?.goOn()
  } finally {
    // Also when one of them has thrown.
    if (!held.isEmpty) plan()
  }
}
