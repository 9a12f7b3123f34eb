import { test } from 'tap'
import { readFilter } from '../kept/history-filter.js'

const read = (q: string) => {
  const { text, fragment } = readFilter({ q }, undefined)
  return { text, fragment }
}

test('the database looks for a short part of a text, which it can compare as it is', t => {
  t.same(read('Time Out'), { text: 'time out', fragment: 'time out' })
  t.same(read('100% of _it_\\'), { text: '100% of _it_\\', fragment: '100% of _it_\\' })
  t.same(read('naïve café au lait'), { text: 'naïve café au lait', fragment: ' au lait' })
  t.same(read('ошибка'), { text: 'ошибка', fragment: undefined })
  t.same(read(''), { text: undefined, fragment: undefined })
  const long = `${'a'.repeat(499)}b`
  t.same(read(long), { text: long, fragment: 'a'.repeat(32) }, 'it is compared at each place of what is kept')
  t.end()
})
