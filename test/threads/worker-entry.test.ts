import { test } from 'tap'
import { workerEntry } from '../../core/threads/worker-entry.js'

test('a worker is started from JavaScript where its module is compiled, and by the loader from source', t => {
  t.same(workerEntry('sampler', 'file:///app/dist/core/watch.js'), {
    entry: new URL('file:///app/dist/core/sampler.js')
  })
  const { entry, eval: isText } = workerEntry('sampler', 'file:///app/core/watch.ts')
  t.equal(isText, true)
  t.match(String(entry), /register\(\); return import\("file:\/\/\/app\/core\/sampler\.ts"\)/)
  t.end()
})
