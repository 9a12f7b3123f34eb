import { test } from 'tap'
import { applicationSlug, slugify } from '../slug.js'

const id = '0a1b2c3d-0000-4000-8000-000000000000'

test('slugify joins what is left of a name by single hyphens', async t => {
  t.equal(slugify('My  Shop (EU)!'), 'my-shop-eu')
  t.equal(slugify('--a__b--'), 'a-b')
  t.equal(slugify('日本'), '')
})

test("a slug is the project's, the name's and the first 8 of the id", async t => {
  t.equal(applicationSlug('acme', 'Web Front', id), 'acme-web-front-0a1b2c3d')
})

test('a name without a single letter or digit still makes a slug', async t => {
  t.equal(applicationSlug('acme', '日本', id), 'acme-app-0a1b2c3d')
})

test('a long slug is cut to 63 characters, keeping the last 8 and no double hyphen', async t => {
  const slug = applicationSlug('p'.repeat(40), 'x'.repeat(200), id)
  t.equal(slug.length, 63)
  t.ok(slug.endsWith('-0a1b2c3d'))
  t.equal(
    applicationSlug('p'.repeat(40), `${'x'.repeat(12)}-y`, id),
    `${'p'.repeat(40)}-${'x'.repeat(12)}-0a1b2c3d`
  )
})
