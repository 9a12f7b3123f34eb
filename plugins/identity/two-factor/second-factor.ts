import type { Clock, Secrets, Tx } from 'busbar/sdk'
import { secondFactorMethods, type SecondFactorMethod } from '../api.js'
import { problems } from '../problems.js'
import { digestOfRecoveryCode } from './recovery-code.js'
import { checkTotp } from './totp.js'
import type { TotpRow, TwoFactorStore } from './two-factor-store.js'

export type CodeVerdict = 'right' | 'reused' | 'wrong'

/** Whether a user has a second factor, and whether a code is right. */
export interface SecondFactor {
  /** The ways a code can be given; none while the factor is off. */
  methods(userId: string, tx?: Tx): Promise<readonly SecondFactorMethod[]>
  /** A code that is right is spent with it. 409 while the factor is off. */
  spend(userId: string, code: string, method: SecondFactorMethod, tx: Tx): Promise<CodeVerdict>
  /** Accepts the first code of a pending enrollment and turns the factor on; 409 when nothing is pending. */
  enable(userId: string, code: string, tx: Tx): Promise<CodeVerdict>
  sealSecret(userId: string, secret: string): string
}

/** `totp` when none is given; 400 for what is no method. */
export function readMethod (method: string | undefined): SecondFactorMethod {
  if (method === undefined) return 'totp'
  const known = secondFactorMethods.find(name => name === method)
  if (known === undefined) throw problems.unknownMethod()
  return known
}

export function createSecondFactor (store: TwoFactorStore, secrets: Secrets, clock: Clock): SecondFactor {
  const place = (userId: string) => ({ table: 'totp', column: 'secret', row: userId })

  async function check (row: TotpRow, code: string, enabledAt: Date, tx: Tx): Promise<CodeVerdict> {
    const verdict = checkTotp(secrets.open(row.secret, place(row.user_id)), code, clock.now(), row.last_step)
    if (verdict.kind === 'right') await store.put({ ...row, enabled_at: enabledAt, last_step: verdict.step }, tx)
    return verdict.kind
  }

  return Object.freeze<SecondFactor>({
    async methods (userId, tx): Promise<readonly SecondFactorMethod[]> {
      const row = await store.find(userId, tx)
      if (row?.enabled_at == null) return []
      return await store.countCodes(userId, tx) > 0 ? secondFactorMethods : ['totp']
    },
    async spend (userId, code, method, tx) {
      const row = await store.lock(userId, tx)
      if (row?.enabled_at == null) throw problems.totpDisabled()
      if (method === 'totp') return await check(row, code, row.enabled_at, tx)
      return await store.spendCode(userId, digestOfRecoveryCode(code), tx) ? 'right' : 'wrong'
    },
    async enable (userId, code, tx) {
      const row = await store.lock(userId, tx)
      if (row === undefined) throw problems.totpNotEnrolled()
      if (row.enabled_at !== null) throw problems.totpEnabled()
      return await check(row, code, clock.now(), tx)
    },
    sealSecret: (userId, secret) => secrets.seal(secret, place(userId))
  })
}
