import { Type } from 'busbar/sdk'
import { test } from 'tap'
import { strictBody, validatorOf } from '../../core/schemas/schemas.js'

test('a field whose schema is true or false is taken as it is, or refused', t => {
  const anything = Type.Unsafe<object>({ type: 'object', properties: { any: true, none: false } })
  const valid = validatorOf(strictBody(anything), 'body')
  const body = { any: [1], more: 1 }
  t.equal(valid(body), true)
  t.same(body, { any: [1] })
  t.equal(valid({ none: 1 }), false)
  t.end()
})
