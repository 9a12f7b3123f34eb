import { test } from 'tap'
import { readCookie } from '../../core/auth/cookie.js'

test('a cookie is found wherever it stands among others', t => {
  for (const header of [
    'token=a',
    'other=1; token=a',
    'other=1;token=a',
    'other=1;  token=a; last=2',
    'x=1;y=2;token=a;z=3'
  ])
    t.equal(readCookie(header, 'token'), 'a', header)
  t.equal(readCookie('token=a; token=b', 'token'), 'a', 'the first of that name')
  for (const header of [undefined, '', ';', 'my-token=a', 'token', 'tokens=a', 'other=token=a'])
    t.equal(readCookie(header, 'token'), undefined, String(header))
  t.end()
})
