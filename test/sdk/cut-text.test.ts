import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import { cutMark, cutText } from 'busbar/sdk'
import { test } from 'tap'

test('a text is cut to its first characters with the mark behind them, and a short one is as it was', async t => {
  t.equal(cutText('abc', 3), 'abc')
  t.equal(cutText('abcd', 3), `abc${cutMark}`)
  t.equal(cutText('a\ud83d\ude00b', 2), `a\ud83d${cutMark}`, 'half of a pair stays half of one')
})

test('what is kept of a long text does not keep the rest of it in memory', async t => {
  setFlagsFromString('--expose-gc')
  const collect = runInNewContext('gc') as () => void
  const used = (): number => {
    collect()
    return process.memoryUsage().heapUsed
  }
  const before = used()
  const kept = Array.from({ length: 10 }, (_, at) => cutText(`${at}`.repeat(20_000_000), 100))
  const more = used() - before
  t.equal(kept.length, 10)
  t.ok(more < 100_000_000, `${more} bytes more are in use`)
})
