import { randomBytes } from 'node:crypto'
import { test } from 'tap'
import { codingFor, compress, isWorthCompressing } from '../../core/http/content-coding.js'
import { KeptAnswers } from '../../core/http/kept-answers.js'

const answer = (tag: string, bytes = 1000) => ({ tag, headers: {}, bytes: Buffer.alloc(bytes), coded: {} })

test('an answer is kept under its address for as long as its tag holds', t => {
  const kept = new KeptAnswers(100_000)
  kept.put('a', answer('1'))
  t.equal(kept.get('a', '1')?.bytes.length, 1000)
  t.equal(kept.get('a', '2'), undefined)
  t.equal(kept.get('b', '1'), undefined)
  const { bytes } = kept
  kept.put('a', answer('2'))
  t.equal(kept.get('a', '1'), undefined, 'a newer one takes its place')
  t.equal(kept.bytes, bytes)
  t.end()
})

test('what was used longest ago makes room, and what is too large is not kept', t => {
  const kept = new KeptAnswers(16_000)
  for (const key of 'abcdefijkl') kept.put(key, answer('1'))
  kept.get('a', '1')
  kept.put('g', answer('1'))
  t.ok(kept.bytes <= 16_000)
  t.equal(kept.get('b', '1'), undefined)
  t.equal(kept.get('a', '1')?.tag, '1')
  kept.put('h', answer('1', 5_000))
  t.equal(kept.get('h', '1'), undefined)
  t.equal(kept.get('g', '1')?.tag, '1', 'and pushes nothing out')
  kept.put('g', answer('2', 5_000))
  t.equal(kept.get('g', '1'), undefined, 'what it would have replaced is out of date')
  t.end()
})

test('a coding is kept with its answer, and not with another one', t => {
  const kept = new KeptAnswers(100_000)
  const first = answer('1')
  kept.put('a', first)
  kept.addCoding('a', first, 'br', Buffer.alloc(10))
  t.equal(kept.get('a', '1')?.coded.br?.length, 10)
  const { bytes } = kept
  const second = answer('2')
  kept.put('a', second)
  t.equal(kept.bytes, bytes - 10)
  kept.addCoding('a', first, 'gzip', Buffer.alloc(10))
  t.equal(kept.get('a', '2')?.coded.gzip, undefined)
  t.end()
})

test('two answers are compressed at a time, and more are sent as they are', async t => {
  const bytes = randomBytes(2 ** 20)
  const made = await Promise.all(['gzip', 'br', 'gzip', 'br'].map(coding => compress(bytes, coding as 'br')))
  t.same(
    made.map(one => one !== undefined),
    [true, true, false, false]
  )
  t.ok(await compress(bytes, 'br'), 'and those that come later are compressed again')
})

test('what is very small or very large is not compressed, and hostile wishes are heard in no time', t => {
  t.same([1023, 1024, 8 * 2 ** 20, 8 * 2 ** 20 + 1].map(isWorthCompressing), [false, true, true, false])
  const wishes = ['gzip;q="', ',,,,', ';=;=', 'gzip;q=9e99', 'br;q=x', '\u00ff', 'a,'.repeat(16_000)]
  for (let n = 0; n < 1000; n++) wishes.push(`x${n}`)
  const begun = performance.now()
  for (const wish of wishes) t.ok([null, 'br', 'gzip'].includes(codingFor(wish)))
  t.ok(performance.now() - begun < 1000)
  t.equal(codingFor('gzip'), 'gzip', 'whatever was asked before')
  t.end()
})
