/** `npm run surface`: writes the report of what authors of plugins can import, which a test compares. */
import { writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { sdkSurface, surfaceFile } from '../test/structure/sdk-surface.js'

const root = dirname(dirname(fileURLToPath(import.meta.url)))
writeFileSync(join(root, surfaceFile), sdkSurface(root))
