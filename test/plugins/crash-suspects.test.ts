import { test } from 'tap'
import { blame } from '../../core/frames/blame.js'
import { type Phase, suspect } from '../../core/plugins/crash-suspects.js'

const death = (marks: Readonly<Record<string, Phase>>): ReadonlyMap<string, Phase> =>
  new Map(Object.entries(marks))
const after = (
  deaths: ReadonlyArray<Readonly<Record<string, Phase>>>,
  before: readonly string[] = []
): { readonly off: readonly string[]; readonly suspects: readonly string[] } => {
  const { quarantined, suspects } = suspect(deaths.map(death), new Set(before))
  return { off: [...quarantined.keys()], suspects: [...suspects] }
}

test('the only plugin that was marked, while it was starting, is kept off at once', t => {
  t.same(after([{ a: 'starting' }]), { off: ['a'], suspects: [] })
  t.same(after([{ a: 'started' }]), { off: [], suspects: ['a'] })
  t.end()
})

test('of several that were marked twice, the one that was starting both times is kept off and no other', t => {
  const marks = { a: 'started', b: 'started', c: 'starting' } as const
  const first = after([marks])
  t.same(first, { off: [], suspects: ['a', 'b', 'c'] })
  const second = after([marks], first.suspects)
  t.same(second, { off: ['c'], suspects: ['a', 'b'] })
  t.same(
    after([{ a: 'started', b: 'started' }], second.suspects).off,
    ['a', 'b'],
    'a death without it was of another'
  )
  t.end()
})

test('what was not marked at the last death is no suspect any more', t => {
  t.same(after([{ b: 'started' }], ['a']), { off: [], suspects: ['b'] })
  t.same(after([], ['a']), { off: [], suspects: ['a'] })
  t.end()
})

test('an error without an owner ends the process where it comes from the release, or no plugin of others is there', t => {
  const nobody = { frame: undefined, owners: [], handedTo: undefined }
  t.equal(blame({ ...nobody, hasThirdPartyCode: false, isOurs: false }).endsProcess, true)
  t.equal(blame({ ...nobody, hasThirdPartyCode: true, isOurs: false }).endsProcess, false)
  t.equal(blame({ ...nobody, hasThirdPartyCode: true, isOurs: true }).endsProcess, true)
  t.same(blame({ ...nobody, owners: ['a'], hasThirdPartyCode: true, isOurs: true }), {
    plugin: 'a',
    endsConnection: false,
    endsProcess: false
  })
  t.end()
})
