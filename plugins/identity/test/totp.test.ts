import { generateSync } from 'otplib'
import { test } from 'tap'
import { checkTotp, newTotpSecret } from '../two-factor/totp.js'

const secret = newTotpSecret()
/** In the middle of a step of 30 s. */
const at = new Date('2026-01-01T12:00:15Z')
const step = Math.floor(at.getTime() / 30_000)
const codeOf = (steps: number): string =>
  generateSync({ secret, epoch: Math.floor(at.getTime() / 1000) + 30 * steps })

test('a code is right in its own step, one early and one late, and in no other', async t => {
  for (const steps of [-1, 0, 1])
    t.same(checkTotp(secret, codeOf(steps), at, null), { kind: 'right', step: step + steps })
  for (const steps of [-120, -3, -2, 2, 3, 120])
    t.same(checkTotp(secret, codeOf(steps), at, null), { kind: 'wrong' }, `${steps} steps`)
})

test('the edges of a step belong to it', async t => {
  const code = codeOf(0)
  const [begin, end] = [step * 30_000, (step + 1) * 30_000]
  for (const [ms, kind] of [
    [begin - 30_001, 'wrong'],
    [begin - 30_000, 'right'],
    [end + 29_999, 'right'],
    [end + 30_000, 'wrong']
  ] as const)
    t.equal(checkTotp(secret, code, new Date(ms), null).kind, kind, `${ms - begin} ms after it began`)
})

test('no step counts after it, or a later one, was accepted', async t => {
  t.equal(checkTotp(secret, codeOf(0), at, step - 1).kind, 'right')
  t.equal(checkTotp(secret, codeOf(0), at, step).kind, 'reused')
  t.equal(checkTotp(secret, codeOf(-1), at, step).kind, 'reused')
  t.equal(checkTotp(secret, codeOf(1), at, step).kind, 'right')
})

test('blanks in a code play no part; anything else than six digits is wrong', async t => {
  const code = codeOf(0)
  t.equal(checkTotp(secret, ` ${code.slice(0, 3)} ${code.slice(3)}\n`, at, null).kind, 'right')
  for (const text of [
    '',
    ' ',
    code.slice(1),
    `${code}0`,
    `${code.slice(0, 5)}x`,
    `-${code.slice(1)}`,
    '１２３４５６'
  ])
    t.equal(checkTotp(secret, text, at, null).kind, 'wrong', text)
})
