import { test } from 'tap'
import { startWith } from '../rollout/start-words.js'

const words = ['node', 'a b', "it's"]

test('the start command takes the place of CMD, and an ENTRYPOINT gets it as its arguments', async t => {
  t.same(startWith(words, []), { command: words })
  t.same(startWith(words, ['docker-entrypoint.sh']), { command: words })
})

test('an ENTRYPOINT that is a shell waiting for a line gets one that means the same words', async t => {
  for (const shell of [
    ['/bin/bash', '-c'],
    ['/bin/bash', '-l', '-c'],
    ['sh', '-ec'],
    ['/bin/ash', '-c', '--']
  ]) {
    t.same(startWith(words, shell), { command: [`exec 'node' 'a b' 'it'\\''s'`] }, shell.join(' '))
  }
})

test('an image of buildpacks starts it with their launcher, and so with their environment', async t => {
  for (const entrypoint of [['/cnb/process/web'], ['/cnb/lifecycle/launcher']]) {
    t.same(startWith(words, entrypoint), {
      entrypoint: ['/cnb/lifecycle/launcher'],
      command: ['--', ...words]
    })
  }
})

test('an ENTRYPOINT in shell form would ignore it, which is said', async t => {
  t.throws(() => startWith(words, ['/bin/sh', '-c', 'node server.js']), {
    message: /shell form.*ignores.*JSON array/
  })
  t.throws(() => startWith(words, ['/bin/bash', '-o', 'pipefail', '-c', 'node server.js']), {
    message: /shell form/
  })
  t.throws(() => startWith(words, ['/bin/sh', '-c', 'node server.js ${PORT}']), { message: /shell form/ })
  t.same(
    startWith(words, ['/bin/bash', '-c', 'exec "$@"', '--']),
    { command: words },
    'it reads its arguments'
  )
  t.same(startWith(words, ['/bin/sh', '/entry.sh']), { command: words })
})
