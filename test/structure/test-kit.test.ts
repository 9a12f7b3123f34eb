import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'tap'

const root = join(import.meta.dirname, '../..')

/** What a plugin's author has is the test kit: `TestKernel.kernel` is the inside, and changes as that does. */
test('the tests of plugins reach into the kernel by methods of the test kit and by nothing else', async t => {
  const files = ['plugins', 'examples', 'lab'].flatMap(folder =>
    readdirSync(join(root, folder), { recursive: true, encoding: 'utf8' })
      .filter(path => path.endsWith('.ts'))
      .map(path => join(folder, path))
  )
  t.ok(
    files.some(path => path.endsWith('.test.ts')),
    'tests were read'
  )
  const reach = /\.kernel\b|\{[^{}]*\bkernel\b[^{}]*\} = (?:await createTestKernel|lab\.k\b|k\b)/
  t.same(
    files.filter(path => reach.test(readFileSync(join(root, path), 'utf8'))),
    []
  )
})
