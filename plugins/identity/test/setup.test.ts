import { createTestKernel } from 'busbar/sdk/testing'
import { test } from 'tap'
import { admin, identityKit, raceAt, refusal } from './identity-kit.js'

test('setup is asked for until the first user exists', async t => {
  const { identity } = await identityKit(t)
  t.equal(await identity.isSetupRequired(), true)
  const user = await identity.setUp({
    email: ' Ada@Example.com ',
    password: 'correct horse',
    username: 'ada',
    instanceName: 'Mill'
  })
  t.match(user, { email: 'ada@example.com', username: 'ada', role: 'admin', first_name: '', last_name: '' })
  t.notOk('password_hash' in user, 'the hash of the password stays inside')
  t.equal(await identity.isSetupRequired(), false)
  t.equal(await identity.instanceName(), 'Mill')
  t.equal(await refusal(identity.setUp(admin)), '409: setup already completed')
})

test('of two setups at the same time one succeeds', async t => {
  const { identity, start, database } = await identityKit(t)
  const other = start()
  const results = await raceAt(database, 'lock table $schema.user in share mode', 3, () => [
    identity.setUp(admin),
    other.setUp({ ...admin, email: 'eve@example.com' }),
    identity.setUp({ ...admin, email: 'mallory@example.com' })
  ])
  t.equal(results.filter(result => result.status === 'fulfilled').length, 1)
  t.equal((await identity.listUsers({ limit: 10, offset: 0 })).total, 1)
  for (const result of results) if (result.status === 'rejected') t.equal(result.reason.status, 409)
})

test('addresses and passwords that cannot be are refused by name', async t => {
  const { identity } = await identityKit(t)
  for (const email of [
    '',
    'ada',
    '@example.com',
    'a b@example.com',
    'a@b@c',
    `${'x'.repeat(250)}@example.com`,
    'a\u0000@example.com'
  ]) {
    t.equal(
      await refusal(identity.setUp({ email, password: admin.password })),
      '400: email is not a valid address',
      JSON.stringify(email).slice(0, 40)
    )
  }
  t.equal(
    await refusal(identity.setUp({ email: admin.email, password: '1234567' })),
    '400: password must have at least 8 characters'
  )
  t.equal(
    await refusal(identity.setUp({ email: admin.email, password: '🔑'.repeat(7) })),
    '400: password must have at least 8 characters'
  )
  t.equal(
    await refusal(identity.setUp({ email: admin.email, password: 'ä'.repeat(513) })),
    '400: password must have at most 1024 bytes'
  )
  t.equal(await identity.isSetupRequired(), true)
})

test('the platform does not start with settings that cannot be, and says which', async t => {
  await t.rejects(createTestKernel({ environment: { JWT_EXPIRY_HOURS: 'soon' } }), {
    message: /cannot start without.*"identity" \(JWT_EXPIRY_HOURS is "soon"; it takes a number above 0/
  })
})

test('a session that can be refreshed for no time refuses the start and names the variable', async t => {
  await t.rejects(identityKit(t, { JWT_REFRESH_HOURS: '0' }), { message: /JWT_REFRESH_HOURS/ })
})
