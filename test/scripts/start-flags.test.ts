import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'tap'
import { startEnvironment, startFlags } from '../../lab/start-flags.js'

const root = join(import.meta.dirname, '../..')

test('the image and the docs start the platform with what `npm start` has', async t => {
  t.ok(startFlags.length > 0)
  const image = readFileSync(join(root, 'Dockerfile'), 'utf8')
  const docs = readFileSync(join(root, 'docs/operations.md'), 'utf8')
  const environment = Object.entries(startEnvironment).map(([name, value]) => `${name}=${value}`)
  t.match(image, startFlags.map(flag => JSON.stringify(flag)).join(', '))
  for (const setting of environment) t.match(image, setting)
  t.match(docs, [...environment, 'node', ...startFlags, 'dist/core/main.js'].join(' '))
})
