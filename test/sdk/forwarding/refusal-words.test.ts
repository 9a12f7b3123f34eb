import { test } from 'tap'
import { isClientsFault, refusalOf } from '../../../sdk/http1/forwarding/refusal.js'

const errorOf = (code?: string): NodeJS.ErrnoException => Object.assign(new Error('x'), { code })

test('why no answer came is told from the error and from whether the container had taken the connection', async t => {
  for (const [code, wasConnected, refusal] of [
    ['E_CONNECT_TIMEOUT', false, 'connectTimeout'],
    ['ETIMEDOUT', false, 'connectTimeout'],
    ['ETIMEDOUT', true, 'broken'],
    ['E_ANSWER_TIMEOUT', true, 'answerTimeout'],
    ['E_BODY_TIMEOUT', true, 'bodyTimeout'],
    ['ECONNREFUSED', false, 'unreachable'],
    ['EHOSTUNREACH', false, 'unreachable'],
    ['ECONNRESET', true, 'broken'],
    ['HPE_INVALID_CONSTANT', true, 'notHttp'],
    [undefined, true, 'broken'],
    [undefined, false, 'unreachable']
  ] as const)
    t.equal(refusalOf(errorOf(code), wasConnected), refusal, `${code} ${wasConnected}`)
})

test('a request that is wrong itself, or whose body stops arriving, is no failure of the application', async t => {
  for (const refusal of ['badHead', 'otherHost', 'tooManyHeaders', 'bodyTimeout'] as const)
    t.ok(isClientsFault(refusal), refusal)
  for (const refusal of ['noTarget', 'unreachable', 'answerTimeout', 'notHttp', 'endlessInterim'] as const)
    t.notOk(isClientsFault(refusal), refusal)
})
