/** A process of its own for `process-end.test.ts`: the code of a plugin that tries to end it. */
import { mkdtemp, realpath, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { noteCode } from '../../core/frames/code-owners.js'
import { keepProcessRunning } from '../../core/frames/process-end.js'

const home = await realpath(await mkdtemp(join(tmpdir(), 'busbar-ending-')))

await writeFile(
  join(home, 'x.mjs'),
  `export const exit = () => process.exit(3)
export const abort = () => process.abort()
export const kill = () => process.kill(process.pid, 'SIGKILL')
export const look = () => process.kill(process.pid, 0)
export const later = () => new Promise((resolve, reject) => setTimeout(() => {
  try { process.exit(3) } catch (error) { reject(error) }
}, 1))
export const deep = (depth = 60) => depth === 0 ? process.exit(3) : [1].map(() => deep(depth - 1))
`
)
noteCode(home, 'ending')
keepProcessRunning()
const kept = process.exit
keepProcessRunning()
const code = (await import(pathToFileURL(join(home, 'x.mjs')).href)) as Record<string, () => unknown>
const outcomes: Record<string, string> = {}
for (const [name, call] of Object.entries(code))
  try {
    outcomes[name] = String(await call())
  } catch (error) {
    outcomes[name] = (error as Error).message
  }
outcomes.once = String(process.exit === kept)
await rm(home, { recursive: true, force: true })
process.send?.(outcomes, () => process.exit(7))
