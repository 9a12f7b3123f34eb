/**
 * `npm run release:api`, with each release: keeps its descriptions in `docs/api/`. What breaks them later must be named in the
 * changelog.
 */
import { writeFile } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { describeBuiltInChannels, describeBuiltIns } from './client/describe.js'

const root = dirname(dirname(fileURLToPath(import.meta.url)))
const descriptions = {
  'openapi.json': await describeBuiltIns(root),
  'asyncapi.json': await describeBuiltInChannels(root)
}
for (const [name, description] of Object.entries(descriptions))
  await writeFile(join(root, 'docs/api', name), `${JSON.stringify(description, null, 1)}\n`)
console.log('docs/api/ has the descriptions of this release')
// Plugins may have begun something as they were loaded.
process.exit(0)
