import * as argon2 from '@node-rs/argon2'
import { passwordPolicy } from '../policy.js'
import { problems } from '../problems.js'

/** The second choice of OWASP: argon2id, 19 MiB, two passes, one lane; about 9 ms. */
const cost = { memoryCost: 19_456, timeCost: 2, parallelism: 1 } as const

/** Two at once: every hash holds one of libuv's four threads, which files and DNS need too. */
const maxRunning = 2
/** A second of work. Further requests are refused with 503. */
const maxWaiting = 200

/** The library; tests put a counter in its place. */
type Argon2 = Pick<typeof argon2, 'hash' | 'verify'>

export class PasswordHasher {
  readonly #withPermit = createSemaphore(maxRunning, maxWaiting)
  #decoy: Promise<string> | undefined

  constructor(private readonly argon: Argon2 = argon2) {}

  async hash(password: string): Promise<string> {
    return await this.#withPermit(() => this.argon.hash(password, cost))
  }

  /** False without a stored hash, after the same time as with one. */
  async verify(stored: string | undefined, password: string): Promise<boolean> {
    // Asked for in either case: the first login after a start must not tell one from the other.
    const other = await this.#decoyHash()
    const against = stored ?? other
    const isTooLong = Buffer.byteLength(password) > passwordPolicy.maxBytes
    const isRight = await this.#withPermit(() => this.argon.verify(against, isTooLong ? '' : password))
    return isRight && !isTooLong && stored !== undefined
  }

  /** Made once, for all who ask at the same time. */
  async #decoyHash(): Promise<string> {
    this.#decoy ??= this.#withPermit(() => this.argon.hash('there is no such user', cost)).catch(
      (error: unknown) => {
        this.#decoy = undefined
        throw error
      }
    )
    return await this.#decoy
  }
}

/** 400 when the password, sent as `field`, is too short or too long to be one. */
export function checkPassword(password: string, field: 'password' | 'new_password'): void {
  const { minCharacters, maxBytes } = passwordPolicy
  // Counted in characters as people see them, not in UTF-16 units.
  if ([...password].length < minCharacters) throw problems.passwordShort({ min: minCharacters }, { field })
  if (Buffer.byteLength(password) > maxBytes) throw problems.passwordLong({ max: maxBytes }, { field })
}

function createSemaphore(maxRunning: number, maxWaiting: number) {
  const waiting: Array<() => void> = []
  let running = 0
  return async <T>(work: () => Promise<T>): Promise<T> => {
    if (running < maxRunning) running++
    else if (waiting.length >= maxWaiting) throw problems.busy()
    else await new Promise<void>(resolve => waiting.push(resolve))
    try {
      return await work()
    } finally {
      const next = waiting.shift()
      if (next !== undefined) next()
      else running--
    }
  }
}
