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

/** @param {readonly string[]} files */
export function runGroup(files) {
  for (const file of files)
    tap.test(file, async t => {
      if (isTooLate()) return
      current = t
      beginFile(file)
      await import(pathToFileURL(file).href)
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
