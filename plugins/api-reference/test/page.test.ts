/** The page in a browser, as people use it. */
import { allow, definePlugin, described, object, Type } from 'busbar/sdk'
import { createTestKernel, type TestClient, type TestKernel } from 'busbar/sdk/testing'
import { test } from 'tap'
import { type Browser, openBrowser, requireBrowser } from '../../../lab/browser.js'

let k: TestKernel
let browser: Browser
let admin: TestClient
let projectId: string
const text = async (selector: string): Promise<string> =>
  (await browser.page.evaluate(
    `document.querySelector(${JSON.stringify(selector)})?.textContent ?? ''`
  )) as string
const open = async (id: string): Promise<string> => {
  await browser.page.evaluate(`location.hash = ${JSON.stringify(`#${id}`)}`)
  const found = `document.getElementById(${JSON.stringify(id)})`
  await browser.page.until(`${found}?.open && ${found}.children.length > 1`)
  return `[id="${id}"]`
}
/** Sends the form, and waits for the status of the answer. */
const send = async (section: string): Promise<string> => {
  await browser.page.click(`${section} .send`)
  await browser.page.until(`!document.querySelector('${section} .send').disabled`)
  return await text(`${section} .outcome .status`)
}

/** A plugin whose words fit on no line. */
const word = 'w'.repeat(3_000)
const wordy = definePlugin({
  id: 'wordy',
  routes(route) {
    route({
      method: 'POST',
      url: '/api/wordy',
      summary: word,
      description: word,
      group: word,
      access: allow.public(word),
      schema: { body: object({ [word]: described(Type.String(), word) }) },
      problems: [{ status: 409, code: `E_${word}`, message: word }],
      handler: () => ({})
    })
  }
})

test('the page in a browser', async t => {
  if (!(await requireBrowser(t))) return
  k = await createTestKernel({ inline: [{ manifest: { id: 'wordy' }, definition: wordy }] })
  browser = await openBrowser()
  t.teardown(async () => {
    await browser.close()
    await k.close()
  })
  admin = await k.as.session('admin')
  projectId = (await admin.post('/api/projects', { name: '<img src=x onerror=alert(1)>', slug: 'shop' })).body
    .id

  await t.test('the page is read by a browser, and nothing on it is refused by its own policy', async t => {
    const { page } = browser
    await page.goto(`${k.url}/`)
    await page.until(`document.querySelectorAll('.operation').length > 100`)
    t.equal(await page.evaluate('location.pathname'), '/api/docs')
    t.match(await text('#state'), /^\d+ operations and \d+ channels, as this instance serves them now\.$/)
    t.same(page.complaints, [])
  })

  await t.test('a search hides what does not match, and says when nothing does', async t => {
    const { page } = browser
    const visible = `[...document.querySelectorAll('.operation')].filter(one => one.offsetParent !== null).length`
    await page.fill('#search', 'deploy-key')
    t.match(await text('#state'), /^\d of \d+ match\.$/)
    t.ok(((await page.evaluate(visible)) as number) < 10)
    await page.fill('#search', 'no such thing at all')
    t.equal(await text('#state'), 'Nothing matches.')
    await page.fill('#search', '')
  })

  await t.test(
    'a link leads to an operation, to a schema and to a channel, and the address follows what is opened',
    async t => {
      const { page } = browser
      await page.goto(`${k.url}/api/docs?#schema/Application`)
      await page.until(`document.getElementById('schema/Application')?.open`)
      const operation = await open('GetProject')
      t.match(await text(operation), /The id of the project/)
      t.equal(
        await page.evaluate(`document.querySelector('${operation} a[href="#schema/Project"]') !== null`),
        false
      )
      await page.click('[id="GetVersion"] > summary')
      await page.until(`location.hash === '#GetVersion'`)
      t.match(await text(await open('channel/build-logs_deploymentId')), /BuildLogEntry/)
      await page.click('[id="GetProject"] .answer > summary')
      await page.until(`document.querySelector('[id="GetProject"] .answer a[href="#schema/Project"]')`)
    }
  )

  await t.test('who is not signed in is told so before the request, and after it', async t => {
    const section = await open('GetProject')
    t.match(await text(`${section} .hint`), /This browser is not signed in/)
    await browser.page.click(`${section} .send`)
    t.match(await text(`${section} .note`), /projectId is needed/)
    await browser.page.fill(`${section} input[name=projectId]`, projectId)
    t.equal(await send(section), '401')
    t.match(await text(`${section} .outcome pre[aria-label]`), /E_UNAUTHORIZED/)
  })

  await t.test('a pasted token is sent, is kept in this tab alone, and is forgotten', async t => {
    const { page } = browser
    const made = await admin.post('/api/tokens', { name: 'page', scopes: ['read'] })
    await page.fill('#caller', 'token')
    await page.fill('#token', made.body.token)
    const section = '[id="GetProject"]'
    t.equal(await send(section), '200')
    t.match(
      await text(`${section} .outcome pre[aria-label]`),
      /<img src=x onerror=alert\(1\)>/,
      'text, not an element'
    )
    t.equal(await page.evaluate(`document.querySelector('.outcome img') === null`), true)
    t.match(await text(`${section} .sample`), new RegExp(projectId), 'the sample has what was filled in')
    t.notMatch(await text(`${section} .sample`), /busbar_pat_/, 'and no secret')
    const creating = await open('CreateProject')
    t.equal(await send(creating), '403')
    t.match(await text(`${creating} .outcome pre[aria-label]`), /scope/)
    t.notMatch(await page.evaluate('location.href'), /busbar_pat_/)
    t.equal(await page.evaluate('localStorage.length'), 0)
    await page.fill('#token', 'busbar_pat_…')
    await page.click(`${section} .send`)
    t.match(await text(`${section} .note`), /the token holds characters that no token has: copy it whole/)
    await page.click('.caller .quiet')
    t.equal(await page.evaluate('sessionStorage.length'), 0)
  })

  await t.test(
    'the session of the browser signs in, changes something with its CSRF token, and takes away what is asked for twice',
    async t => {
      const { page } = browser
      await page.fill('#caller', 'session')
      const login = await open('Login')
      await page.fill(
        `${login} textarea`,
        JSON.stringify({ email: 'admin@example.com', password: 'correct horse battery' })
      )
      t.equal(await send(login), '200')
      const section = await open('CreateProject')
      await page.fill(`${section} textarea`, '{ "name": ')
      await page.click(`${section} .send`)
      t.match(await text(`${section} .note`), /the body is no JSON: /)
      await page.fill(`${section} textarea`, '{ "name": "Second", "slug": "second" }')
      t.equal(await send(section), '201')
      const [second] = (await admin.get('/api/projects')).body.filter(
        (one: { slug: string }) => one.slug === 'second'
      )
      const removal = await open('DeleteProject')
      await page.fill(`${removal} input[name=projectId]`, second.id)
      await page.click(`${removal} .send`)
      t.match(await text(`${removal} .send`), /^Really DELETE /)
      t.equal(await text(`${removal} .outcome`), '', 'nothing was sent yet')
      t.match(await send(removal), /^20[024]$/)
    }
  )

  await t.test('a sample is shown in the language that was chosen last', async t => {
    const { page } = browser
    await page.click('[id="CreateProject"] [data-language=python]')
    t.match(await text('[id="CreateProject"] .sample pre'), /urllib\.request/)
    t.match(await text('[id="GetProject"] .sample pre'), /urllib\.request/)
  })

  await t.test('a channel is heard from the page', async t => {
    const { page } = browser
    const section = await open('channel/platform')
    await page.click(`${section} .send`)
    await page.until(`document.querySelector('${section} .note').textContent.startsWith('Listening')`)
    const speaking = setInterval(() => k.publish('platform', 'update', { updating: true }), 50)
    t.teardown(() => clearInterval(speaking))
    await page.until(
      `document.querySelector('${section} pre[aria-live]').textContent.includes('"updating":true')`
    )
    await page.click(`${section} .actions .quiet`)
    await page.until(`document.querySelector('${section} .note').textContent === 'The connection is closed.'`)
  })

  await t.test('a narrow screen has no sideways scroll, and its contents behind a button', async t => {
    const { page } = browser
    await page.resize(380, 800)
    t.equal(await page.evaluate('document.documentElement.scrollWidth'), 380)
    t.equal(await page.evaluate(`getComputedStyle(document.getElementById('contents')).display`), 'none')
    await page.click('#menu')
    t.equal(await page.evaluate(`getComputedStyle(document.getElementById('contents')).display`), 'block')
  })

  await t.test('nor has it with everything opened', async t => {
    const { page } = browser
    await page.evaluate(`for (const one of document.querySelectorAll('.operation')) one.open = true`)
    await page.until(`[...document.querySelectorAll('.operation')].every(one => one.children.length > 1)`)
    const wide = await page.evaluate(
      `[...document.querySelectorAll('.operation')].filter(one => one.scrollWidth > one.clientWidth).map(({ id }) => id)`
    )
    t.same(wide, [])
    t.equal(await page.evaluate('document.documentElement.scrollWidth'), 380)
  })

  await t.test(
    'an address that is cut in the middle of a character leads to nothing, and harms nothing',
    async t => {
      const { page } = browser
      await page.evaluate(`location.hash = '#%'`)
      await page.goto(`${k.url}/api/docs#%E0%A`)
      await page.until(`document.querySelectorAll('.operation').length > 100`)
      t.match(await text('#state'), /as this instance serves them now/)
    }
  )

  await t.test('nothing went wrong on the page, but for what was refused on purpose', t => {
    t.same(
      browser.page.complaints.filter(line => !/status of 40[13]/.test(line)),
      []
    )
    t.end()
  })

  await t.test('a description that cannot be read is said on the page', async t => {
    const { page } = browser
    await page.block('*/api/asyncapi.json')
    await page.goto(`${k.url}/api/docs`)
    await page.until(
      `document.getElementById('state').textContent.startsWith('The description could not be read')`
    )
    t.match(await text('#state'), /Reload to try again/)
  })
})
