/** `npm run client:pack`: makes the tarball of `@busbar/client` in the current folder, for `npm publish`. */
import { dirname } from 'node:path'
import { fileURLToPath } from 'node:url'
import { packClient } from './client/pack.js'

const { file, contents } = await packClient(dirname(dirname(fileURLToPath(import.meta.url))), process.cwd())
console.log(`${file}: ${contents.length} files`)
