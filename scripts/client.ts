/** `npm run client`: writes the types of the client anew, from the declarations of all built-in plugins. */
import { writeFile } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { describeBuiltIns } from './client/describe.js'
import { generateOperations } from './client/generate.js'

const root = dirname(dirname(fileURLToPath(import.meta.url)))
const file = join(root, 'sdk/client/operations.generated.ts')
const text = generateOperations(await describeBuiltIns(root))
await writeFile(file, text)
console.log(`${text.match(/^ {2}'/gm)?.length ?? 0} operations written to ${file}`)
// Plugins may have begun something as they were loaded.
process.exit(0)
