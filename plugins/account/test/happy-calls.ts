import { identity } from 'busbar/api/identity'
import type { HappyCalls, HappyFixture, TestClient } from 'busbar/sdk/testing'
import { generateSync } from 'otplib'
import { follow } from './browser.js'

const password = 'correct horse battery'

interface Guest {
  readonly email: string
  readonly client: TestClient
}

/** Somebody who signs in for one call, so that the other callers keep their sessions. */
async function guest({ k, unique }: HappyFixture): Promise<Guest> {
  const name = unique('guest')
  return { client: await k.as.session(name), email: (await k.user(name)).email }
}

interface Factored extends Guest {
  readonly codes: readonly string[]
}

async function guestWithFactor(fixture: HappyFixture): Promise<Factored> {
  const { client, email } = await guest(fixture)
  const {
    body: { secret }
  } = await client.post('/api/auth/totp/enroll', { password })
  const verified = await client.post('/api/auth/totp/enroll/verify', {
    code: generateSync({ secret: secret as string })
  })
  return { email, client: follow(fixture.k, verified), codes: verified.body.recovery_codes as string[] }
}

/** The secret of an invitation, which the admin is given while the platform sends no mail. */
async function invitationFor({ admin, unique }: HappyFixture): Promise<string> {
  const { body } = await admin.post('/api/users/invite', { email: `${unique('invited')}@example.com` })
  return new URL(body.link as string, 'http://localhost').searchParams.get('token') ?? ''
}

export const happyCalls: HappyCalls = {
  'POST /api/auth/forgot-password': async fixture => ({
    as: fixture.k.as.anonymous(),
    body: { email: (await guest(fixture)).email }
  }),
  'POST /api/auth/reset-password': async fixture => {
    const { k } = fixture
    const { email } = await guest(fixture)
    const reset = await k.transaction(async tx => await k.service(identity).openPasswordReset(email, tx))
    return { as: k.as.anonymous(), body: { token: reset?.secret, new_password: 'another good one' } }
  },
  'GET /api/auth/invitation': async fixture => ({
    as: fixture.k.as.anonymous(),
    query: `?token=${await invitationFor(fixture)}`
  }),
  'POST /api/auth/accept-invitation': async fixture => ({
    as: fixture.k.as.anonymous(),
    body: { token: await invitationFor(fixture), password }
  }),
  'PUT /api/account/alert-preferences': async fixture => ({
    as: (await guest(fixture)).client,
    body: { deploy_success: false }
  }),
  'POST /api/auth/setup': () => ({ body: { email: 'second@example.com', password }, expect: 409 }),
  'POST /api/auth/login': async fixture => ({
    as: fixture.k.as.anonymous(),
    body: { email: (await guest(fixture)).email, password }
  }),
  'POST /api/auth/login/verify': async fixture => {
    const { email, codes } = await guestWithFactor(fixture)
    const as = fixture.k.as.anonymous()
    const {
      body: { challenge }
    } = await as.post('/api/auth/login', { email, password })
    return { as, body: { challenge, code: codes[0], method: 'recovery_code' } }
  },
  'POST /api/auth/refresh': async fixture => ({ as: (await guest(fixture)).client }),
  'POST /api/auth/logout': async fixture => ({ as: (await guest(fixture)).client }),
  'PUT /api/auth/password': async fixture => ({
    as: (await guest(fixture)).client,
    body: { current_password: password, new_password: 'another good one' }
  }),
  'PUT /api/auth/profile': async fixture => ({
    as: (await guest(fixture)).client,
    body: { first_name: 'Ada' }
  }),
  'DELETE /api/auth/sessions/{sessionId}': async fixture => {
    const { client } = await guest(fixture)
    return { as: client, ids: { sessionId: (await client.get('/api/auth/sessions')).body[0].id as string } }
  },
  'POST /api/auth/totp/enroll': async fixture => ({ as: (await guest(fixture)).client, body: { password } }),
  'POST /api/auth/totp/enroll/verify': async fixture => {
    const { client } = await guest(fixture)
    const {
      body: { secret }
    } = await client.post('/api/auth/totp/enroll', { password })
    return { as: client, body: { code: generateSync({ secret: secret as string }) } }
  },
  'POST /api/auth/totp/disable': async fixture => {
    const { client, codes } = await guestWithFactor(fixture)
    return { as: client, body: { password, code: codes[0], method: 'recovery_code' } }
  },
  'POST /api/auth/totp/recovery-codes': async fixture => {
    const { client, codes } = await guestWithFactor(fixture)
    return { as: client, body: { password, code: codes[0], method: 'recovery_code' } }
  }
}
