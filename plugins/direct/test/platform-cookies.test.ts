import { test } from 'tap'
import { setsPlatformCookie } from '../platform-cookies.js'

test('a Set-Cookie that a browser would send back under a name of the platform is taken out', async t => {
  for (const header of ['token=x; Path=/', ' token =x', '=token=x', ' = =csrf_token=x', 'refresh_token']) t.ok(setsPlatformCookie(header), header)
  for (const header of ['tokens=x', 'a=token=x', 'session=busbar', '', '=']) t.notOk(setsPlatformCookie(header), header)
})
