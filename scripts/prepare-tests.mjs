/**
 * `npm test` runs this first. tap generates its Test class from the plugins that .taprc names, once
 * after an install; left to itself it does so during the first run, which then still has the old class.
 */
import { execFileSync } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'

const root = dirname(dirname(fileURLToPath(import.meta.url)))
const generated = join(root, 'node_modules/@tapjs/test/test-built/dist/esm/index.js')
/** The plugins that .taprc turns off; a fresh install still has them. */
const unwanted = ['@tapjs/typescript', '@tapjs/mock']

const built = readFileSync(generated, 'utf8')
if (unwanted.some(plugin => built.includes(plugin))) {
  console.log('generating the Test class of tap (once after an install)')
  execFileSync(process.execPath, [join(root, 'node_modules/tap/dist/esm/run.mjs'), 'build'], {
    cwd: root,
    stdio: ['ignore', 'ignore', 'inherit']
  })
}
