import { test } from 'tap'
import { settingsFrom } from '../../../sdk/testing/settings-from.js'
import { renderEmail } from '../render-email.js'
import { mailSettingsOf, settings } from '../settings.js'

test('text and HTML say the same, and nothing in the content is markup', async t => {
  const { subject, text, html } = renderEmail({
    subject: 'Hello <b>',
    paragraphs: ['One & <script>alert(1)</script>'],
    link: { label: 'Go "there"', url: 'https://busbar.example.com/a?token=x&y=<z>' },
    note: "It's small"
  })
  t.equal(subject, 'Hello <b>')
  t.equal(
    text,
    'One & <script>alert(1)</script>\n\nGo "there":\nhttps://busbar.example.com/a?token=x&y=%3Cz%3E\n\nIt\'s small\n'
  )
  t.notMatch(html, /<script|<b>|y=<z>/)
  t.match(html, '<p>One &amp; &lt;script&gt;alert(1)&lt;/script&gt;</p>')
  t.match(html, '<a href="https://busbar.example.com/a?token=x&amp;y=%3Cz%3E"')
  t.match(html, '>Go &quot;there&quot;</a>')
  t.match(html, 'It&#39;s small')
})

test('a subject is one line', async t => {
  t.equal(
    renderEmail({ subject: 'Hi\r\nBcc: eve@example.com\u2028\u0000 there', paragraphs: [] }).subject,
    'Hi Bcc: eve@example.com there'
  )
})

test('a link leads to the web', async t => {
  for (const url of ['javascript:alert(1)', 'file:///etc/passwd', '/relative', '']) {
    t.throws(
      () => renderEmail({ subject: '', paragraphs: [], link: { label: 'x', url } }),
      { code: 'E_MAIL_LINK' },
      url
    )
  }
})

const read = (environment: Record<string, string>) => mailSettingsOf(settingsFrom(settings, environment))

test('without a host mail is off', async t => {
  t.equal(read({}), undefined)
  t.equal(read({ SMTP_USER: 'x', SMTP_PORT: '25' }), undefined)
})

test('what is not given has the defaults of the documentation', async t => {
  t.same(read({ SMTP_HOST: 'mx', SMTP_FROM_EMAIL: 'a@b.example' }), {
    host: 'mx',
    port: 587,
    tlsMode: 'starttls',
    login: undefined,
    from: { name: 'Busbar', address: 'a@b.example' }
  })
  t.match(
    read({
      SMTP_HOST: 'mx',
      SMTP_USER: 'a@b.example',
      SMTP_PASSWORD: 'p',
      SMTP_PORT: '465',
      SMTP_TLS_MODE: 'tls',
      SMTP_FROM_NAME: 'Mill'
    }),
    {
      port: 465,
      tlsMode: 'tls',
      login: { user: 'a@b.example', password: 'p' },
      from: { name: 'Mill', address: 'a@b.example' }
    }
  )
})

test('a setting that cannot be used is named', async t => {
  const good = { SMTP_HOST: 'mx', SMTP_FROM_EMAIL: 'a@b.example' }
  t.throws(() => read({ SMTP_HOST: 'mx' }), { message: /SMTP_FROM_EMAIL/ })
  t.throws(() => read({ SMTP_HOST: 'mx', SMTP_USER: 'no-address' }), { message: /SMTP_FROM_EMAIL/ })
  for (const SMTP_PORT of ['0', '65536', 'x', '-1', '1.5'])
    t.throws(() => read({ ...good, SMTP_PORT }), { message: /^SMTP_PORT is / }, SMTP_PORT)
  t.throws(() => read({ ...good, SMTP_TLS_MODE: 'ssl' }), {
    message: 'SMTP_TLS_MODE is "ssl"; it takes none, starttls, tls'
  })
})
