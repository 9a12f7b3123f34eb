import type { Clock, Secrets, Tx } from 'busbar/sdk'
import { type SecondFactorMethod, secondFactorMethods } from '../api.js'
import { problems } from '../problems.js'
import { digestOfRecoveryCode } from './recovery-code.js'
import type { TotpRow, TwoFactorStore } from './two-factor-store.js'

type CodeVerdict = 'right' | 'reused' | 'wrong'

/** `totp` when none is given; 400 for what is no method. */
export function readMethod(method: string | undefined): SecondFactorMethod {
  if (method === undefined) return 'totp'
  const known = secondFactorMethods.find(name => name === method)
  if (known === undefined) throw problems.unknownMethod()
  return known
}

const placeOf = (userId: string) => ({ table: 'totp', column: 'secret', row: userId })

/** Whether a user has a second factor, and whether a code is right. */
export class SecondFactor {
  constructor(
    private readonly store: TwoFactorStore,
    private readonly secrets: Secrets,
    private readonly clock: Clock
  ) {}

  /** The ways a code can be given; none while the factor is off. */
  async methods(userId: string, tx?: Tx): Promise<readonly SecondFactorMethod[]> {
    const row = await this.store.find(userId, tx)
    if (row?.enabled_at == null) return []
    return (await this.store.countCodes(userId, tx)) > 0 ? secondFactorMethods : ['totp']
  }

  /** A code that is right is spent with it. 409 while the factor is off. */
  async spend(userId: string, code: string, method: SecondFactorMethod, tx: Tx): Promise<CodeVerdict> {
    const row = await this.store.lock(userId, tx)
    if (row?.enabled_at == null) throw problems.totpDisabled()
    if (method === 'totp') return await this.#check(row, code, row.enabled_at, tx)
    return (await this.store.spendCode(userId, digestOfRecoveryCode(code), tx)) ? 'right' : 'wrong'
  }

  /** Accepts the first code of a pending enrollment and turns the factor on; 409 when nothing is pending. */
  async enable(userId: string, code: string, tx: Tx): Promise<CodeVerdict> {
    const row = await this.store.lock(userId, tx)
    if (row === undefined) throw problems.totpNotEnrolled()
    if (row.enabled_at !== null) throw problems.totpEnabled()
    return await this.#check(row, code, this.clock.now(), tx)
  }

  sealSecret(userId: string, secret: string): string {
    return this.secrets.seal(secret, placeOf(userId))
  }

  async #check(row: TotpRow, code: string, enabledAt: Date, tx: Tx): Promise<CodeVerdict> {
    const { checkTotp } = await import('./totp.js')
    const verdict = checkTotp(
      this.secrets.open(row.secret, placeOf(row.user_id)),
      code,
      this.clock.now(),
      row.last_step
    )
    if (verdict.kind === 'right')
      await this.store.put({ ...row, enabled_at: enabledAt, last_step: verdict.step }, tx)
    return verdict.kind
  }
}
