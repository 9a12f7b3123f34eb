import { test } from 'tap'
import { mailWarnings } from '../mail-warnings.js'

const settings = {
  host: 'mail.example.com',
  port: 587,
  tlsMode: 'starttls',
  login: { user: 'a', password: 'correct horse' },
  from: { name: 'Busbar', address: 'a@example.com' }
} as const

test('mail that is off, or goes over the network without encryption, is named', t => {
  t.match(mailWarnings(undefined), [{ code: 'mail_off', remedy: /SMTP_HOST/ }])
  t.same(mailWarnings(settings), [])
  const [warning] = mailWarnings({ ...settings, tlsMode: 'none' })
  t.match(warning, { code: 'mail_unencrypted', message: /mail\.example\.com/, remedy: /SMTP_TLS_MODE/ })
  t.notMatch(JSON.stringify(warning), 'correct horse')
  for (const host of ['localhost', '127.0.0.1', '::1'])
    t.same(mailWarnings({ ...settings, host, tlsMode: 'none' }), [], 'a server on the same machine')
  t.end()
})
