import type { Database, Problem, SessionCaller } from 'busbar/sdk'
import type { Client, SessionGrant, TotpStatus, TwoFactor, TwoFactorProof } from '../api.js'
import { type LockOut, passwordCounter, sessionCounter } from '../passwords/lock-out.js'
import type { Reauthentication } from '../passwords/reauthentication.js'
import { problems } from '../problems.js'
import type { KnownDevices } from '../sessions/known-devices.js'
import type { SessionIssuer } from '../sessions/session-issuer.js'
import type { UserStore } from '../users/user-store.js'
import { digestOfRecoveryCode, newRecoveryCodes } from './recovery-code.js'
import type { SecondFactor } from './second-factor.js'
import type { TwoFactorStore } from './two-factor-store.js'

interface TwoFactorServiceParts {
  readonly db: Database
  readonly store: TwoFactorStore
  readonly users: UserStore
  readonly secondFactor: SecondFactor
  readonly reauthentication: Reauthentication
  readonly lockOut: LockOut
  readonly devices: KnownDevices
  readonly issuer: SessionIssuer
}

export class TwoFactorService implements TwoFactor {
  constructor(private readonly parts: TwoFactorServiceParts) {}

  async totpStatus(userId: string): Promise<TotpStatus> {
    const { store } = this.parts
    const row = await store.find(userId)
    if (row?.enabled_at == null) return { enabled: false, enabled_at: null, recovery_codes_remaining: 0 }
    return {
      enabled: true,
      enabled_at: row.enabled_at,
      recovery_codes_remaining: await store.countCodes(userId)
    }
  }

  async enrollTotp(
    caller: SessionCaller,
    password: string,
    client: Client
  ): ReturnType<TwoFactor['enrollTotp']> {
    const { db, store, users, secondFactor, reauthentication } = this.parts
    const user = await reauthentication.confirm(caller, { password }, client, 'never')
    const { newTotpSecret, totpImage, totpUri } = await import('./totp.js')
    const secret = newTotpSecret()
    await db.transaction(async tx => {
      await users.lock(user.id, tx)
      const existing = await store.lock(user.id, tx)
      if (existing?.enabled_at != null) throw problems.totpEnabled()
      await store.put(
        {
          user_id: user.id,
          secret: secondFactor.sealSecret(user.id, secret),
          enabled_at: null,
          last_step: null
        },
        tx
      )
    })
    const uri = totpUri(user.email, secret)
    return { secret, uri, qr_code: await totpImage(uri) }
  }

  async verifyTotp(caller: SessionCaller, code: string, client: Client): ReturnType<TwoFactor['verifyTotp']> {
    const { db, store, users, secondFactor, lockOut, devices, issuer } = this.parts
    let failure: () => Problem = problems.wrongCode
    return await lockOut.attempt({
      counters: [sessionCounter(caller.user.email, caller.sessionId)],
      alsoCounts: [passwordCounter(caller.user.email, devices.origin(caller.user.email, client))],
      failure: () => failure(),
      prove: async () =>
        await db.transaction(async tx => {
          const user = await users.lock(caller.user.id, tx)
          if (user === undefined) throw problems.sessionEnded()
          const verdict = await secondFactor.enable(user.id, code, tx)
          if (verdict !== 'right') {
            if (verdict === 'reused') failure = problems.codeReused
            return undefined
          }
          const recoveryCodes = newRecoveryCodes()
          await store.replaceCodes(user.id, recoveryCodes.map(digestOfRecoveryCode), tx)
          return { recoveryCodes, grant: await issuer.replaceAll(user, client, tx) }
        })
    })
  }

  async disableTotp(caller: SessionCaller, proof: TwoFactorProof, client: Client): Promise<SessionGrant> {
    const { db, store, users, reauthentication, issuer } = this.parts
    await reauthentication.confirm(caller, proof, client, 'always')
    return await db.transaction(async tx => {
      const user = await users.lock(caller.user.id, tx)
      if (user === undefined) throw problems.sessionEnded()
      await store.delete(user.id, tx)
      await store.deleteChallenges(user.id, tx)
      return await issuer.replaceAll(user, client, tx)
    })
  }

  async regenerateRecoveryCodes(
    caller: SessionCaller,
    proof: TwoFactorProof,
    client: Client
  ): Promise<readonly string[]> {
    const { db, store, reauthentication } = this.parts
    await reauthentication.confirm(caller, proof, client, 'always')
    const recoveryCodes = newRecoveryCodes()
    await db.transaction(async tx => {
      const row = await store.lock(caller.user.id, tx)
      if (row?.enabled_at == null) throw problems.totpDisabled()
      await store.replaceCodes(caller.user.id, recoveryCodes.map(digestOfRecoveryCode), tx)
    })
    return recoveryCodes
  }

  async resetTotp(
    caller: SessionCaller,
    userId: string,
    proof: Partial<TwoFactorProof>,
    client: Client
  ): Promise<void> {
    const { db, store, users, reauthentication, issuer } = this.parts
    await reauthentication.confirm(caller, { ...proof, password: proof.password ?? '' }, client, 'when on')
    await db.transaction(async tx => {
      const user = await users.lock(userId, tx)
      if (user === undefined) throw problems.userNotFound()
      const row = await store.lock(user.id, tx)
      if (row?.enabled_at == null) throw problems.totpDisabled()
      await store.delete(user.id, tx)
      await store.deleteChallenges(user.id, tx)
      await issuer.endAll(user.id, tx)
    })
  }
}
