import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'tap'
import { sdkSurface, surfaceFile } from './sdk-surface.js'

const root = join(import.meta.dirname, '../..')

test('what authors can import is what the committed report says', t => {
  t.equal(
    sdkSurface(root),
    readFileSync(join(root, surfaceFile), 'utf8'),
    '`npm run surface` writes it anew; what authors lose or must change belongs in CHANGELOG.md'
  )
  t.end()
})
