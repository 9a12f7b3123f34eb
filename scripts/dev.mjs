/** `npm run dev`: the platform, built and started again whenever a source changes. Types are not checked here either. */
import { spawn } from 'node:child_process'
import { watch } from 'node:fs'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { runFolders } from './build/sources.mjs'

const root = dirname(dirname(fileURLToPath(import.meta.url)))
/** Editors save in several steps, and a checkout changes many files. */
const settleMs = 150

let child
let isStale = false
let isEnding = false
let timer

function start() {
  isStale = false
  child = spawn('npm', ['start', '--silent'], { cwd: root, stdio: 'inherit' })
  child.once('exit', code => {
    child = undefined
    if (isEnding) process.exit(code ?? 0)
    if (isStale) start()
    else console.log('The platform has ended. It starts again when a source changes.')
  })
}

function startAgain(path) {
  console.log(`${path} has changed.`)
  isStale = true
  if (child === undefined) start()
  else child.kill('SIGTERM')
}

for (const folder of runFolders) {
  watch(join(root, folder), { recursive: true }, (_, name) => {
    if (name === null || isEnding || /(?:^|\/)(?:test|node_modules)\/|\.md$|~$/.test(name)) return
    clearTimeout(timer)
    timer = setTimeout(startAgain, settleMs, join(folder, name))
  })
}
// A terminal sends it to the platform as well.
process.once('SIGINT', () => {
  isEnding = true
})
process.once('SIGTERM', () => {
  isEnding = true
  child?.kill('SIGTERM')
})
start()
