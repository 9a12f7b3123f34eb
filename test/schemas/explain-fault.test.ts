import { uuid } from 'busbar/sdk'
import { test } from 'tap'
import { explainFault, explainFaults } from '../../core/schemas/schema-fault.js'

const explained = (keyword: string, params: object, instancePath = '/name', message?: string) =>
  explainFault([{ keyword, params: { ...params }, instancePath, message }], 'body')

test('a fault names its field and says what would be right', async t => {
  t.equal(explained('minLength', { limit: 1 }), 'name must not be empty')
  t.equal(explained('minLength', { limit: 8 }), 'name must have at least 8 characters')
  t.equal(explained('maxLength', { limit: 80 }), 'name must have at most 80 characters')
  t.equal(explained('required', { missingProperty: 'key' }, '/vars/0'), 'vars/0/key is required')
  t.equal(explained('required', { missingProperty: 'key' }, ''), 'key is required')
  t.equal(explained('type', { type: 'object' }, ''), 'the body must be an object')
  t.equal(explained('type', { type: ['string', 'null'] }), 'name must be a string or null')
  t.equal(explained('enum', { allowedValues: ['a', 1] }), 'name must be one of a, 1')
  t.equal(explained('maxLength', { limit: 80 }, ''), 'the body must have at most 80 characters')
  t.equal(explained('minLength', { limit: 1 }, ''), 'the body must not be empty')
  t.equal(explained('maxItems', { limit: 3 }), 'name must have at most 3 items')
  t.equal(explained('minItems', { limit: 3 }), 'name must have at least 3 items')
  t.equal(
    explained('pattern', { pattern: uuid().pattern }),
    'name must be a UUID in lowercase hyphenated form'
  )
  t.equal(explained('pattern', {}), 'name has characters or a form that is not allowed')
  t.equal(explained('format', {}, '/name', 'must be a date'), 'name must be a date')
  t.equal(explained('format', {}, ''), 'the body is not valid')
  t.equal(explainFault([], 'query'), 'query is not valid')
  t.equal(explainFault(null, 'query'), 'query is not valid')
})

test('all faults are told, one for each field, and the sentence has the first three', async t => {
  const missing = (name: string) => ({
    keyword: 'required',
    params: { missingProperty: name },
    instancePath: ''
  })
  const { message, faults } = explainFaults(
    [
      missing('a'),
      { keyword: 'type', params: { type: 'string' }, instancePath: '/b' },
      { keyword: 'anyOf', params: {}, instancePath: '/b' },
      missing('c'),
      missing('d')
    ],
    'body'
  )
  t.equal(message, 'a is required; b must be a string; c is required; and 1 more')
  t.same(faults[1], { field: 'b', error: 'b must be a string' })
  t.equal(faults.length, 4)
  t.same(explainFaults([], 'body'), { message: 'body is not valid', faults: [] })
  t.equal(
    explainFaults(
      Array.from({ length: 1000 }, (_, at) => missing(`f${at}`)),
      'body'
    ).faults.length,
    20
  )
})

test('a field whose name the sender has chosen is cut', async t => {
  const long = 'x'.repeat(1_000_000)
  const { message, faults } = explainFaults(
    [{ keyword: 'type', params: { type: 'string' }, instancePath: `/${long}` }],
    'body'
  )
  t.ok(message.length < 1000)
  t.ok(JSON.stringify(faults).length < 2000)
})
