import { test } from 'tap'
import { setsPlatformCookie, withoutPlatformCookies } from '../../../sdk/http1/forwarding/platform-cookies.js'

test('a Set-Cookie that a browser would send back under a name of the platform is taken out', async t => {
  for (const header of [
    'token=x; Path=/',
    ' token =x',
    '=token=x',
    'known_device=x; Path=/api/auth',
    ' = =csrf_token=x',
    'refresh_token'
  ])
    t.ok(setsPlatformCookie(header), header)
  for (const header of ['tokens=x', 'a=token=x', 'session=busbar', '', '='])
    t.notOk(setsPlatformCookie(header), header)
})

test('what tells the platform a known device reaches no application', t => {
  t.equal(withoutPlatformCookies('a=1; known_device=busbar_dev_b1.k.x.y; b=2'), 'a=1; b=2')
  t.equal(withoutPlatformCookies('known_device=mine'), 'known_device=mine')
  t.equal(withoutPlatformCookies('=busbar_dev_b1.k.x.y; b=2'), 'b=2', 'under whatever name')
  t.end()
})

test('a secret of the platform reaches no application, however it is percent-encoded', t => {
  const encoded = (text: string, isEncoded: (at: number) => boolean): string =>
    [...text].map((char, at) => (isEncoded(at) ? `%${char.charCodeAt(0).toString(16)}` : char)).join('')
  for (const prefix of ['busbar_ses_', 'busbar_ref_', 'busbar_dev_']) {
    for (const isEncoded of [() => false, () => true, (at: number) => at % 2 === 0, (at: number) => at > 9]) {
      for (const rest of ['abc', 'abc%', '%zz', '%ff']) {
        const value = encoded(prefix, isEncoded) + rest
        for (const spelled of [value, `"${value}"`])
          t.equal(withoutPlatformCookies(`a=%; x=${spelled}; b=2`), 'a=%; b=2', spelled)
      }
    }
  }
  for (const value of ['busbar_%', '%', '%62usbar', '%2562usbar_ses_', 'x%62usbar_ses_a'])
    t.equal(withoutPlatformCookies(`x=${value}`), `x=${value}`)
  t.end()
})

test('values that cannot be decoded cost no more than those that can', t => {
  const costOf = (pair: string): number => {
    const header = pair.repeat(3_000)
    const before = process.cpuUsage()
    for (let round = 0; round < 20; round += 1) withoutPlatformCookies(header)
    const { user, system } = process.cpuUsage(before)
    return user + system
  }
  costOf('a=%41;')
  t.ok(costOf('a=%ff;') < 4 * costOf('a=%41;') + 20_000)
  t.end()
})
