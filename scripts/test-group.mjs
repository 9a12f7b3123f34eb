/**
 * What the files of a group run in, one after another: each is a test of the process, which ends with its own tests and
 * takes down what they have put up before the next file is loaded. With `TEST_UNTIL` (ms) none is begun after that moment, which the
 * reporter tells.
 */
import { pathToFileURL } from 'node:url'
import tap from 'tap'
import { beginFile } from './test-cpu.mjs'

let current = tap
const isTooLate = () => Date.now() > Number(process.env.TEST_UNTIL ?? Number.POSITIVE_INFINITY)

/** Several times what any takes on a busy machine: one that waits for ever fails by its name, and the next is begun. */
const fileLimitMs = 1000 * Number(process.env.TEST_FILE_SECONDS ?? 1200)
/** What keeps a process from its end after that is said by its exit, instead of by nothing for half an hour. */
const endLimitMs = Math.min(60_000, fileLimitMs)

/** As much as helps to find who has left it: what was asked of an engine, which program, which connection. */
const nameOf = handle =>
  [handle.constructor?.name, handle._httpMessage?.path, handle.spawnfile, handle.remoteAddress, handle.fd]
    .filter(part => part !== undefined)
    .join(' ')

/** @param {readonly string[]} files */
export function runGroup(files) {
  for (const file of files)
    tap.test(file, { timeout: fileLimitMs }, async t => {
      if (isTooLate()) return
      current = t
      beginFile(file)
      await import(pathToFileURL(file).href)
    })
  tap.teardown(() => {
    setTimeout(() => {
      console.error(`does not end: ${process._getActiveHandles().map(nameOf).join(', ')}`)
      process.exit(1)
    }, endLimitMs).unref()
  })
}

/** What such a file gets as `test` of tap. */
export const test = (...args) => current.test(...args)

/** And what it gets as tap itself. */
export default new Proxy(tap, {
  get(_, name) {
    const value = current[name]
    return typeof value === 'function' ? value.bind(current) : value
  },
  set(_, name, value) {
    current[name] = value
    return true
  }
})
