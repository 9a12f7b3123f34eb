import type { HappyCalls, HappyFixture } from 'busbar/sdk/testing'
import { generateSync } from 'otplib'

const password = 'correct horse battery'
const somebody = async ({ k, unique }: HappyFixture): Promise<{ userId: string }> => ({
  userId: (await k.user(unique('user'))).id
})

export const happyCalls: HappyCalls = {
  'POST /api/users': ({ unique }) => ({
    body: { email: `${unique('new')}@example.com`, password, role: 'member' },
    expect: 201
  }),
  'POST /api/users/invite': ({ unique }) => ({
    body: { email: `${unique('invited')}@example.com`, role: 'member' },
    expect: 201
  }),
  'DELETE /api/users/invitations/{invitationId}': async ({ admin, unique }) => ({
    ids: {
      invitationId: (await admin.post('/api/users/invite', { email: `${unique('invited')}@example.com` }))
        .body.id as string
    },
    expect: 204
  }),
  'DELETE /api/users/{userId}': async fixture => ({ ids: await somebody(fixture) }),
  'PUT /api/users/{userId}/role': async fixture => ({
    ids: await somebody(fixture),
    body: { role: 'admin' }
  }),
  'PUT /api/users/{userId}/password': async fixture => ({
    ids: await somebody(fixture),
    body: { password: 'another good one', current_password: password }
  }),
  'POST /api/users/{userId}/totp/reset': async ({ k, unique }) => {
    const name = unique('factored')
    const client = await k.as.session(name)
    const {
      body: { secret }
    } = await client.post('/api/auth/totp/enroll', { password })
    await client.post('/api/auth/totp/enroll/verify', { code: generateSync({ secret: secret as string }) })
    return { ids: { userId: (await k.user(name)).id }, body: { current_password: password } }
  }
}
