import type { Tx } from 'busbar/sdk'
import { test } from 'tap'
import { authKit, sessionOf, tokenOf } from './auth-kit.js'

test('a secret says what it is for, and only its digest is to be kept', async t => {
  const { credentials } = authKit()
  for (const [kind, shape] of [
    ['session', /^busbar_ses_[\w-]{43}$/],
    ['refresh', /^busbar_ref_[\w-]{43}$/],
    ['token', /^busbar_pat_[\w-]{43}$/]
  ] as const) {
    const { value, digest } = credentials.issue(kind)
    t.match(value, shape)
    t.match(digest, /^[\w-]{43}$/)
    t.notOk(value.includes(digest))
    t.not(credentials.issue(kind).value, value)
  }
})

test('a refresh cookie is read with its CSRF token only', async t => {
  const { credentials } = authKit()
  const { value, digest } = credentials.issue('refresh')
  const cookie = `csrf_token=abc; refresh_token=${value}`
  t.equal(credentials.refreshDigest({ cookie, 'x-csrf-token': 'abc' }), digest)
  t.throws(() => credentials.refreshDigest({ cookie }), {
    status: 403,
    code: 'E_CSRF',
    message: 'missing csrf token'
  })
  t.throws(() => credentials.refreshDigest({ cookie, 'x-csrf-token': 'abd' }), {
    status: 403,
    message: 'invalid csrf token'
  })
  for (const other of ['', 'busbar_ref_nonsense', credentials.issue('session').value]) {
    t.equal(
      credentials.refreshDigest({ cookie: `csrf_token=abc; refresh_token=${other}`, 'x-csrf-token': 'abc' }),
      undefined,
      other.slice(0, 20)
    )
  }
  t.equal(credentials.refreshDigest({ cookie: 'csrf_token=abc', 'x-csrf-token': 'abc' }), undefined)
})

const credentialsOfAll = {
  one: sessionOf('s1', 'ada'),
  two: sessionOf('s2', 'ada'),
  three: sessionOf('s3', 'bob'),
  plain: tokenOf('t1'),
  pinned: tokenOf('t2', { pins: ['p1', 'p2'] })
}

/** The names of the credentials that are looked up again after `forget`. */
async function forgotten(
  kit: ReturnType<typeof authKit>,
  forget: () => Promise<void> | void
): Promise<string[]> {
  const shown = Object.entries(credentialsOfAll).map(([name, found]) => [name, kit.issue(found)] as const)
  for (const [, headers] of shown) await kit.authenticate(headers)
  await forget()
  const again: string[] = []
  for (const [name, headers] of shown) {
    const before = kit.asked.length
    await kit.authenticate(headers)
    if (kit.asked.length > before) again.push(name)
  }
  return again
}

test('credentials are forgotten by user, session, token or pinned project, and no others', async t => {
  const kit = authKit()
  for (const [kind, id, names] of [
    ['user', 'ada', ['one', 'two']],
    ['user', 'eve', []],
    ['session', 's3', ['three']],
    ['token', 't1', ['plain']],
    ['project', 'p2', ['pinned']],
    ['project', 'p3', []],
    ['session', 't1', []]
  ] as const) {
    t.same(
      await forgotten(kit, async () => {
        await kit.credentials.forget(kind, id)
      }),
      names,
      `${kind} ${id}`
    )
  }
})

test('in a transaction they are forgotten when it has committed', async t => {
  const kit = authKit()
  const tx = {} as Tx
  t.same(
    await forgotten(kit, async () => {
      await kit.credentials.forget('user', 'ada', tx)
    }),
    [],
    'not before'
  )
  t.same(
    await forgotten(kit, () => {
      for (const commit of kit.commits.splice(0)) commit()
    }),
    ['one', 'two']
  )
})

test('what another process says counts here; what cannot be read, or may have been missed, forgets all', async t => {
  const kit = authKit()
  t.same(
    await forgotten(kit, () => {
      kit.wire.emit('credentials', 'session:s1')
    }),
    ['one']
  )
  for (const data of ['', 'user', 'user:', 'team:1']) {
    t.equal(
      (
        await forgotten(kit, () => {
          kit.wire.emit('credentials', data)
        })
      ).length,
      5,
      JSON.stringify(data)
    )
  }
  t.equal(
    (
      await forgotten(kit, () => {
        kit.wire.emit('reconnect')
      })
    ).length,
    5
  )
})
