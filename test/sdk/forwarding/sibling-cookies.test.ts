import { test } from 'tap'
import { setsCookieOfOthers } from '../../../sdk/http1/forwarding/sibling-cookies.js'

const own = 'shop-web-1a2b3c4d.apps.example.com'

test('a Set-Cookie for another host than the application’s own is told by its Domain, as browsers read it', async t => {
  for (const header of [
    'a=1; Domain=apps.example.com',
    'a=1;domain=.apps.example.com;Path=/',
    'a=1; Path=/; DOMAIN = Apps.Example.Com ; Secure',
    'a=1;\tDomain\t=\texample.com',
    'a=1; Domain=com',
    'a=1; Domain=other-5e6f7a8b.apps.example.com',
    'a=1; Domain=..shop-web-1a2b3c4d.apps.example.com',
    'a=1; Domain="shop-web-1a2b3c4d.apps.example.com"',
    'a="1; Domain=apps.example.com"',
    `a=1; Domain=${own}; Domain=apps.example.com`,
    // Who reads only the first, or heeds no value that long, takes the first of these.
    `a=1; Domain=apps.example.com; Domain=${own}`,
    'a=1; Domain=apps.example.com; Domain=',
    `a=1; Domain=apps.example.com; \xa0Domain=${own}`,
    '; Domain=apps.example.com',
    '=; Domain=apps.example.com'
  ])
    t.ok(setsCookieOfOthers(header, own), header)
  for (const header of [
    'a=1',
    '',
    'Domain=apps.example.com; Path=/',
    'a=1; Domain',
    'a=1; Domain=',
    'a=1; Domain=.',
    'a=1; Path=/; xDomain=apps.example.com',
    'a=1; Path=Domain=apps.example.com',
    `a=1; Domain=${own}; Secure`,
    `a=1; domain=.${own.toUpperCase()}`
  ])
    t.notOk(setsCookieOfOthers(header, own), header)
})
