import { test } from 'tap'
import {
  notificationConflicts,
  notificationFaults,
  notificationRecord
} from '../../core/declarations/notification-kinds.js'

const own = { id: 'shop', builtIn: true }
const sold = { id: 'shop.sold' }
const fine = {
  type: 'item.sold',
  label: 'Item sold',
  description: 'Something was sold.',
  group: 'Shop',
  severity: 'ok',
  audience: { project: 'projectId' },
  title: '{item} was sold'
}
const faultsOf = (fields: object, context = own, event: unknown = sold): string[] =>
  notificationFaults(context, event, { ...fine, ...fields }, [])

test('each part of a declared notification is of its form, and the fault names it', t => {
  const right = [
    {},
    { audience: 'admins' },
    { audience: { user: 'buyer' } },
    { audience: { user: 'buyer', project: 'projectId' } },
    { when: { kind: 'bike', price: [1, null, true] }, preference: 'deploy_success' },
    { body: 'To {buyer}\n{{{item}'.replace('{{', ''), link: '/projects/{projectId}' },
    { title: 'x'.repeat(200), type: 'x_1.a-b.c' }
  ]
  for (const fields of right) t.same(faultsOf(fields), [], JSON.stringify(fields))
  const wrong: ReadonlyArray<readonly [fields: object, fault: RegExp]> = [
    [{ type: 'sold' }, /^type is/],
    [{ type: 'Item.sold' }, /^type is/],
    [{ type: 1 }, /^type is/],
    [{ type: `a.${'b'.repeat(99)}` }, /^type is/],
    [{ type: 'x.shop.sold' }, /^x\. is for third-party plugins$/],
    [{ label: '' }, /^label is a text of 1 to 100/],
    [{ description: undefined }, /^description is/],
    [{ group: 'x'.repeat(61) }, /^group is/],
    [{ severity: 'bad' }, /^severity is ok, warn, error$/],
    [{ preference: 'sales' }, /^preference is one of deploy_failures/],
    [{ when: 'sold' }, /^when has/],
    [{ when: { kind: {} } }, /^when has/],
    [{ when: { kind: [[{}]] } }, /^when has/],
    [{ audience: 'everybody' }, /^audience names/],
    [{ audience: {} }, /^audience names/],
    [{ audience: null }, /^audience names/],
    [{ audience: { user: 1 } }, /^audience names/],
    [{ audience: { user: 'buyer', project: 1 } }, /^audience names/],
    [{ audience: { project: 'a', team: 'b' } }, /^audience names/],
    [{ title: '' }, /^title is one line/],
    [{ title: 'a\nb' }, /^title is one line/],
    [{ title: 'x'.repeat(201) }, /^title is one line/],
    [{ title: '{item was sold' }, /^title has a brace/],
    [{ title: '{the item} was sold' }, /^title has a brace/],
    [{ body: 1 }, /^body is/],
    [{ body: 'x'.repeat(2001) }, /^body is/],
    [{ body: '}' }, /^body has a brace/],
    [{ link: 'https://example.com' }, /^link is/],
    [{ link: '//example.com' }, /^link is/],
    [{ link: '/a b' }, /^link is/]
  ]
  for (const [fields, fault] of wrong) {
    const faults = faultsOf(fields)
    t.equal(faults.length, 1, `${JSON.stringify(fields)}: ${faults.join('; ')}`)
    t.match(faults[0], fault)
  }
  t.end()
})

test('a plugin declares what its own events are, a third-party one under its own name', t => {
  for (const event of [{ id: 'bank.paid' }, { id: 1 }, null, 'shop.sold'])
    t.same(faultsOf({}, own, event), ["it takes an event of the plugin: event('shop.…')"])
  t.same(notificationFaults(own, sold, null, []), ['it takes an object that says what is told to whom'])
  const foreign = { id: 'shop', builtIn: false }
  t.same(faultsOf({}, foreign), ['the types of a third-party plugin begin with x.shop.'])
  t.same(faultsOf({ type: 'x.shop.sold' }, foreign), [])
  t.same(faultsOf({ type: 'x.shopping.sold' }, foreign).length, 1)
  t.end()
})

test('a type is of one plugin, and is the same thing wherever that declares it', t => {
  const record = (plugin: string, fields: object = {}) =>
    notificationRecord(plugin, `${plugin}.sold`, { ...fine, ...fields } as never)
  t.same(notificationFaults(own, sold, { ...fine, title: 'Sold' }, [record('shop')]), [])
  t.same(notificationFaults(own, sold, { ...fine, severity: 'error' }, [record('shop')]), [
    'its severity is another one than where this type was declared before'
  ])
  t.same(notificationConflicts([record('shop'), record('shop')], [record('shop')]), [])
  t.same(notificationConflicts([record('shop'), record('shop')], [record('bank')]), [
    'the notification "item.sold" is already declared by "bank"'
  ])
  t.same(notificationConflicts([record('shop')], [record('bank', { type: 'a.b' })]), [])
  t.end()
})
