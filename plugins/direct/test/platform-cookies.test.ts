import { test } from 'tap'
import { setsPlatformCookie, withoutPlatformCookies } from '../platform-cookies.js'

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
  t.end()
})
