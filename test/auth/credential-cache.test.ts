import { test } from 'tap'
import { CredentialCache, type KnownCredential } from '../../core/auth/credential-cache.js'

const known = (userId: string): KnownCredential => {
  const caller = {
    kind: 'session',
    sessionId: userId,
    user: { id: userId, email: '', username: '', role: 'member' }
  } as const
  return { caller, answer: { kind: 'caller', caller }, expiresAtMs: Infinity, usedAtMs: 0 }
}

test('the cache is bounded and keeps what is asked for', async t => {
  const cache = new CredentialCache(10)
  for (let i = 0; i < 1000; i++) {
    await cache.load(String(i), async () => known(String(i)))
    cache.get('0')
  }
  const kept = Array.from({ length: 1000 }, (_, i) => String(i)).filter(
    digest => cache.get(digest) !== undefined
  )
  t.ok(kept.length <= 10, `${kept.length} kept`)
  t.ok(kept.includes('0'))
  t.ok(kept.includes('999'))
})

test('what was read before a revocation is not kept, nor shared with who asks after it', async t => {
  const cache = new CredentialCache(10)
  let deliver: (known: KnownCredential) => void = () => {}
  const slow = cache.load(
    'd',
    async () =>
      await new Promise(resolve => {
        deliver = resolve
      })
  )
  cache.drop({ kind: 'user', id: 'u' })
  let asked = 0
  const fresh = cache.load('d', async () => {
    asked++
    return undefined
  })
  deliver(known('u'))
  t.ok(await slow)
  t.equal(await fresh, undefined)
  t.equal(asked, 1)
  t.equal(cache.get('d'), undefined)
})
