import { test } from 'tap'
import { decideSet, isChange } from '../variable-set.js'

const stored = [
  { id: '1', key: 'HOST', value: 'db', is_secret: false },
  { id: '2', key: 'PASSWORD', value: 'hunter2', is_secret: true }
]

test('the set is replaced: new keys are added, changed ones updated, missing ones removed', async t => {
  t.same(
    decideSet(stored, [
      { key: 'HOST', value: 'db2' },
      { key: 'PORT', value: '1' }
    ]),
    {
      add: [{ key: 'PORT', value: '1', is_secret: false }],
      update: [{ id: '1', value: 'db2', is_secret: false }],
      remove: ['2']
    }
  )
})

test('unchanged keeps the stored value, and a set that is the same changes nothing', async t => {
  const change = decideSet(stored, [
    { key: 'HOST', value: 'db', is_secret: false },
    { key: 'PASSWORD', unchanged: true, is_secret: true, value: '••••••••' }
  ])
  t.same(change, { add: [], update: [], remove: [] })
  t.notOk(isChange(change))
})

test('unchanged may make a variable secret, but never a secret readable', async t => {
  t.same(
    decideSet(stored, [
      { key: 'HOST', unchanged: true, is_secret: true },
      { key: 'PASSWORD', unchanged: true }
    ]).update,
    [{ id: '1', value: undefined, is_secret: true }]
  )
  t.throws(() => decideSet(stored, [{ key: 'PASSWORD', unchanged: true, is_secret: false }]), {
    status: 400,
    code: 'E_VARIABLE_STAYS_SECRET',
    message: /PASSWORD/
  })
})

test('a secret stays secret when the client does not say', async t => {
  t.same(decideSet(stored, [{ key: 'PASSWORD', value: 'new' }]).update, [
    { id: '2', value: 'new', is_secret: true }
  ])
})

test('a value that cannot be decrypted any more can be set again', async t => {
  t.same(
    decideSet([{ id: '1', key: 'A', value: undefined, is_secret: true }], [{ key: 'A', value: '' }]).update,
    [{ id: '1', value: '', is_secret: true }]
  )
})

test('blank keys are skipped; every other fault names its key', async t => {
  t.same(decideSet([], [{ key: '' }, { key: '  ' }]).add, [])
  t.throws(() => decideSet([], [{ key: '1A', value: '' }]), {
    status: 400,
    code: 'E_VARIABLE_KEY',
    message: /1A/
  })
  t.throws(() => decideSet([], [{ key: ' A', value: '' }]), { code: 'E_VARIABLE_KEY' })
  t.throws(
    () =>
      decideSet(
        [],
        [
          { key: 'A', value: '1' },
          { key: 'A', value: '2' }
        ]
      ),
    { code: 'E_VARIABLE_DUPLICATE', message: /A is there/ }
  )
  t.throws(() => decideSet([], [{ key: 'A' }]), { code: 'E_VARIABLE_NO_VALUE', message: /A/ })
  t.throws(() => decideSet([], [{ key: 'A', unchanged: true }]), {
    code: 'E_VARIABLE_NOT_STORED',
    message: /A/
  })
  t.throws(() => decideSet([], [{ key: 'A', value: 'ä'.repeat(32 * 1024 + 1) }]), {
    code: 'E_VARIABLE_TOO_LONG',
    message: /A has 65538 bytes/
  })
  t.throws(() => decideSet([], [{ key: 'A', value: 'a\u0000b' }]), { code: 'E_VARIABLE_NUL', message: /A/ })
  t.equal(decideSet([], [{ key: 'A', value: 'ä'.repeat(32 * 1024) }]).add.length, 1)
})
