import { cutMark } from 'busbar/sdk'
import { test } from 'tap'
import { notificationRecord } from '../../core/declarations/notification-kinds.js'
import { raisedBy } from '../../core/events/raised.js'

const at = new Date('2026-03-01T10:00:00.000Z')
const projectId = '3f0c9a52-7d5e-4b1e-8a64-1f0f3b1c9d11'
const userId = '9b2d4c1e-5a6f-4e07-b3d8-2c7e9f10a4b5'

const declared = (fields: object = {}) =>
  notificationRecord('shop', 'shop.sold', {
    type: 'item.sold',
    label: 'Item sold',
    description: 'Something was sold.',
    group: 'Shop',
    severity: 'ok',
    audience: { project: 'projectId' },
    title: '{item} was sold',
    ...fields
  } as never)

function raise(records: ReturnType<typeof declared>[], data: unknown) {
  const faults: string[] = []
  const raised = raisedBy(records, data, { at, onFault: fault => faults.push(fault) })
  return { raised, faults, first: raised[0] }
}

test('words stand for the fields of the event, in a link as one part of its path', t => {
  const record = declared({
    preference: 'deploy_success',
    body: 'For {price}, new: {isNew}; {note}.',
    link: '/items/{item}/{price}'
  })
  const { first, faults } = raise([record], { projectId, item: 'a/b c', price: 3, isNew: true, note: null })
  t.match(first, {
    id: /^[0-9a-f-]{36}$/,
    type: 'item.sold',
    severity: 'ok',
    audience: { kind: 'project', projectId },
    preference: 'deploy_success',
    title: 'a/b c was sold',
    body: 'For 3, new: true; .',
    link: '/items/a%2Fb%20c/3',
    occurredAt: at
  })
  t.same(faults, [])
  t.not(raise([record], { projectId, item: '' }).first?.id, first?.id)
  t.end()
})

test('of one type the first declaration that fits is told, of several types each', t => {
  const records = [
    declared({ when: { kind: 'bike' }, title: 'A bike' }),
    declared({ when: { kind: ['car', null], used: false }, title: 'A car' }),
    declared({ title: 'Something' }),
    declared({ type: 'item.gone', title: 'Gone' })
  ]
  const titlesOf = (data: object): string[] =>
    raise(records, { projectId, ...data }).raised.map(({ title }) => title)
  t.same(titlesOf({ kind: 'bike' }), ['A bike', 'Gone'])
  t.same(titlesOf({ kind: 'car', used: false }), ['A car', 'Gone'])
  t.same(titlesOf({ kind: null, used: false }), ['A car', 'Gone'])
  t.same(titlesOf({ kind: 'car', used: true }), ['Something', 'Gone'])
  t.same(raise([declared({ when: { kind: 'bike' } })], { projectId, kind: 'car' }).raised, [])
  t.end()
})

test('whom it is for is in the fields that hold an id; without one nobody is told', t => {
  const audienceOf = (audience: unknown, data: unknown) => {
    const { first, faults } = raise([declared({ audience, title: 'Sold' })], data)
    return first?.audience ?? faults
  }
  t.same(audienceOf('admins', null), { kind: 'admins' })
  t.same(audienceOf({ user: 'userId' }, { userId }), { kind: 'user', userId, projectId: null })
  t.same(audienceOf({ user: 'userId', project: 'projectId' }, { userId, projectId }), {
    kind: 'user',
    userId,
    projectId
  })
  const fault = (name: string) => [
    `the notification "item.sold" of the plugin "shop": its event has no id in "${name}", so nobody is told`
  ]
  t.same(audienceOf({ project: 'projectId' }, {}), fault('projectId'))
  t.same(audienceOf({ project: 'projectId' }, null), fault('projectId'))
  t.same(audienceOf({ project: 'projectId' }, { projectId: 'shop' }), fault('projectId'))
  t.same(audienceOf({ user: 'userId', project: 'projectId' }, { userId }), fault('projectId'))
  t.same(audienceOf({ user: 'userId' }, { userId: 7 }), fault('userId'))
  t.end()
})

test('foreign text is bounded, on one line where it has one, and what cannot be stored or turns the reading is taken out', t => {
  const record = declared({ title: 'Of {item}!', body: '{item}' })
  const { first } = raise([record], { projectId, item: `a\nb\r\0c\u202ed\u2028e\ud800` })
  t.equal(first?.title, 'Of a b  c d e\ufffd!')
  t.equal(first?.body, 'a\nb  c d\u2028e\ufffd')
  const sly = raise([record], { projectId, item: 'a\u009b31mb\u0085c\u200fd\u061ce\u0090f' }).first
  t.match(sly, { title: 'Of a 31mb c d e f!', body: 'a 31mb\u0085c d e f' })
  const long = raise([record], { projectId, item: 'x'.repeat(1_000_000) }).first
  t.equal(long?.title, `${`Of ${'x'.repeat(200)}`.slice(0, 200)}${cutMark}`)
  t.equal(long?.body, `${'x'.repeat(2_000)}${cutMark}`)
  const linked = declared({ title: 'Sold', link: '/items/{item}' })
  t.equal(raise([linked], { projectId, item: 'x'.repeat(900) }).first?.link?.length, 907)
  t.equal(
    raise([linked], { projectId, item: 'x'.repeat(1_000) }).first?.link,
    null,
    'one that long leads nowhere'
  )
  t.equal(raise([linked], { projectId, item: '\ud800' }).first?.link, '/items/%EF%BF%BD')
  t.end()
})

test('a field that is missing, or is no text, leaves its place empty and is told', t => {
  const { first, faults } = raise([declared()], { projectId, item: { name: 'bike' } })
  t.equal(first?.title, 'was sold')
  t.same(faults, [
    'the notification "item.sold" of the plugin "shop": its event has neither text nor number in "item", which its words name'
  ])
  t.same(raise([declared()], { projectId }).faults, faults)
  t.end()
})
