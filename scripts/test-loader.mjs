/**
 * Loads TypeScript for the tests, as `--import=./scripts/test-loader.mjs`. tsx does all that this does and more, which a
 * start of the platform pays for a thousand times; two hundred files of tests and many of their programs begin with one.
 * Threads have a loader of their own (`core/threads/worker-entry.ts`).
 */
import { register } from 'node:module'
import { relative } from 'node:path'
import { isMainThread } from 'node:worker_threads'
import { beginFile } from './test-cpu.mjs'
import { isGroup } from './test-groups.mjs'

const [, program = ''] = process.argv
if (isMainThread) {
  register('./test-loader-hooks.mjs', import.meta.url, { data: { isGroup: isGroup(program) } })
  if (program.endsWith('.test.ts')) beginFile(relative(process.cwd(), program))
}
