import { test } from 'tap'
import { gitProblem, localProblem } from '../git/git-failure.js'

const attempt = { repo: 'https://h/r', branch: null, hasCredentials: false, memoryMib: 64, spaceMib: 384 }

test('git that runs out of memory says so, while it fetches and on the files that it has', t => {
  for (const [stderr, mebibytes] of [
    ['fatal: attempting to allocate 99999999 over limit 67108864', 64],
    ['fatal: Out of memory, malloc failed (tried to allocate 5 bytes)', 384],
    ['fatal: unable to create thread: Resource temporarily unavailable', 384],
    ['fatal: mmap failed: Cannot allocate memory', 384]
  ] as const) {
    const wanted = { code: 'E_SOURCE_SIZE', message: `more than ${mebibytes} MiB of memory` }
    t.match(gitProblem(stderr, attempt), wanted, stderr)
    t.match(localProblem(stderr, attempt, 'git checkout ended with 128'), wanted, stderr)
  }
  t.end()
})
