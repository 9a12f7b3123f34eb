import { randomBytes, timingSafeEqual } from 'node:crypto'
import type { IncomingHttpHeaders } from 'node:http'
import type { Log, Tx } from 'busbar/sdk'
import { digestOf } from '../digest.js'
import type { InstanceStore } from '../instance-store.js'
import { problems } from '../problems.js'
import { isLocalRequest, type SetupPolicy } from './setup-policy.js'
import type { UserStore } from './user-store.js'

const codeKey = 'setup_code'
/** Without the letters and digits that are taken for each other. */
const alphabet = 'abcdefghjkmnpqrstuvwxyz23456789'
const groups = 4
const groupLength = 5

interface SetupAccessParts {
  readonly users: UserStore
  readonly instance: InstanceStore
  readonly policy: SetupPolicy
}

/** Who may make the first user. */
export class SetupAccess {
  /** The last admin cannot be deleted: what has been set up stays so. */
  #isDone = false

  constructor(private readonly parts: SetupAccessParts) {}

  get isCodeRequired(): boolean {
    return this.parts.policy.kind === 'code'
  }

  async isRequired(tx?: Tx): Promise<boolean> {
    if (this.#isDone) return false
    const isEmpty = await this.parts.users.isEmpty(tx)
    // What a transaction sees may be rolled back.
    if (!isEmpty && tx === undefined) this.#isDone = true
    return isEmpty
  }

  /** 409 once there is a user, 403 for a request from where set-up is not open. Needs no body. */
  async checkRequest(headers: IncomingHttpHeaders): Promise<void> {
    if (!(await this.isRequired())) throw problems.setupCompleted()
    if (this.parts.policy.kind === 'local' && !isLocalRequest(headers)) throw problems.setupNotLocal()
  }

  /** 403 unless the code is the one of now; any will do where none is asked for. */
  async checkCode(code: string | undefined): Promise<void> {
    const { policy, instance } = this.parts
    if (policy.kind !== 'code') return
    const wanted = policy.given === undefined ? await instance.get(codeKey) : digestOf(policy.given)
    if (wanted === undefined || code === undefined || !isSame(digestOf(code.trim()), wanted))
      throw problems.setupCode()
  }

  /** Says what the first step is; where a code is asked for that the operator has not given, makes and prints that of this start. */
  async announce(log: Log): Promise<void> {
    const { policy, instance } = this.parts
    if (!(await this.isRequired())) return
    if (policy.kind !== 'code' || policy.given !== undefined) {
      const fields =
        policy.kind === 'code' ? 'email, password, and as code what SETUP_CODE says' : 'email, password'
      log.info(`${firstStep} (${fields})`)
      return
    }
    const code = newCode()
    // In the database, so that every process takes it: the one that started last has printed it.
    await instance.set(codeKey, digestOf(code))
    log.warn(`${firstStep} (email, password, code): the one-time code for it is ${code}`)
  }

  /** Forgets the code: it has done what it was for. */
  async close(tx: Tx): Promise<void> {
    await this.parts.instance.remove(codeKey, tx)
  }
}

const firstStep = 'this platform has no user yet: the first one is made by POST /api/auth/setup'

const isSame = (a: string, b: string): boolean =>
  a.length === b.length && timingSafeEqual(Buffer.from(a), Buffer.from(b))

/** 31 letters do not divide 256, so bytes that would favour some are thrown away. About 99 bits. */
function newCode(): string {
  const letters: string[] = []
  while (letters.length < groups * groupLength) {
    for (const byte of randomBytes(32)) {
      const letter = byte < 248 ? alphabet[byte % alphabet.length] : undefined
      if (letter !== undefined && letters.length < groups * groupLength) letters.push(letter)
    }
  }
  return Array.from({ length: groups }, (_, group) =>
    letters.slice(group * groupLength, (group + 1) * groupLength).join('')
  ).join('-')
}
