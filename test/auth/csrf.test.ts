import { test } from 'tap'
import { checkCsrf } from '../../core/auth/csrf.js'

const cookie = 'theme=dark; csrf_token=abc123'
const check = (method: string, headers: Record<string, string>) => checkCsrf(method, headers)?.message

test('CSRF is asked of methods that change something', async t => {
  for (const method of ['GET', 'HEAD', 'OPTIONS']) t.equal(check(method, { cookie }), undefined)
  for (const method of ['POST', 'PUT', 'PATCH', 'DELETE']) {
    t.equal(check(method, { cookie }), 'missing csrf token')
    t.equal(check(method, { 'x-csrf-token': 'abc123' }), 'missing csrf token')
    t.equal(check(method, { 'x-csrf-token': '', cookie: 'csrf_token=' }), 'missing csrf token')
    t.equal(check(method, { 'x-csrf-token': 'ABC1230', cookie }), 'invalid csrf token')
    t.equal(check(method, { 'x-csrf-token': 'abc124', cookie }), 'invalid csrf token')
    t.equal(check(method, { 'x-csrf-token': 'abc123', cookie }), undefined)
  }
})
