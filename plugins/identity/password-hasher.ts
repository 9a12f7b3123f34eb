import { hash, verify } from '@node-rs/argon2'
import { passwordPolicy } from './policy.js'
import { problems } from './problems.js'

/** The second choice of OWASP: argon2id, 19 MiB, two passes, one lane; about 9 ms. */
const cost = { memoryCost: 19_456, timeCost: 2, parallelism: 1 } as const

/** Two at once: every hash holds one of libuv's four threads, which files and DNS need too. */
const maxRunning = 2
/** A second of work. Whoever comes later is told to come back. */
const maxWaiting = 200

export interface PasswordHasher {
  hash(password: string): Promise<string>
  /** False without a stored hash, after the same time as with one. */
  verify(stored: string | undefined, password: string): Promise<boolean>
}

export function createPasswordHasher (): PasswordHasher {
  const inTurn = createTurns(maxRunning, maxWaiting)
  let decoy: string | undefined

  return Object.freeze<PasswordHasher>({
    hash: password => inTurn(() => hash(password, cost)),
    async verify (stored, password) {
      decoy ??= await inTurn(() => hash('there is no such user', cost))
      const against = stored ?? decoy
      const isTooLong = Buffer.byteLength(password) > passwordPolicy.maxBytes
      const isRight = await inTurn(() => verify(against, isTooLong ? '' : password))
      return isRight && !isTooLong && stored !== undefined
    }
  })
}

/** 400 when the password is too short or too long to be one. */
export function checkPassword (password: string): void {
  const { minCharacters, maxBytes } = passwordPolicy
  // Counted in characters as people see them, not in UTF-16 units.
  if ([...password].length < minCharacters) throw problems.passwordShort({ min: minCharacters })
  if (Buffer.byteLength(password) > maxBytes) throw problems.passwordLong({ max: maxBytes })
}

function createTurns (maxRunning: number, maxWaiting: number) {
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
