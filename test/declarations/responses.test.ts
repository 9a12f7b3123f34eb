import { type AnyPlugin, allow, definePlugin, described, problemTable, Type } from 'busbar/sdk'
import { test } from 'tap'
import { describeApi } from '../../core/declarations/openapi.js'
import { record } from '../../core/declarations/recorder.js'

const problems = problemTable({
  full: [409, 'E_NOTES_FULL', 'there are {most} notes already'],
  busy: [409, 'E_NOTES_BUSY', '{reason}'],
  locked: [429, 'E_NOTES_LOCKED', 'too many attempts']
})
const plugin = (more: object): AnyPlugin =>
  definePlugin({
    id: 'notes',
    routes(route) {
      route({
        method: 'POST',
        url: '/api/notes',
        summary: 'Write a note',
        access: allow.token('write', { project: 'none' }),
        handler: () => null,
        ...more
      } as never)
    }
  })
const apiOf = (more: object): any => describeApi(record(plugin(more), { id: 'notes', builtIn: true }).routes)
/** With what it refers to in the place of each reference. */
function operation(more: object): any {
  const { paths, components } = apiOf(more)
  const { responses, ...rest } = paths['/api/notes'].post
  return {
    ...rest,
    responses: Object.fromEntries(
      Object.entries<any>(responses).map(([status, { $ref: reference, ...response }]) => [
        status,
        { ...(reference && components.responses[reference.replace(/^.*\//, '')]), ...response }
      ])
    )
  }
}

test('what an operation refuses is told by status, code and sentence', t => {
  const { responses, 'x-codes': codes } = operation({
    problems: [problems.full, { ...problems.busy, message: 'somebody else writes' }]
  })
  t.same(codes, { 409: ['E_NOTES_FULL', 'E_NOTES_BUSY'] })
  t.match(responses['409'], {
    description: '- `E_NOTES_FULL`: there are {most} notes already\n- `E_NOTES_BUSY`: somebody else writes',
    content: { 'application/json': { schema: { $ref: '#/components/schemas/Error' } } }
  })
  t.same(
    Object.keys(responses),
    ['200', '400', '401', '403', '404', '408', '409', '413', '415', '429', '500', '503'],
    'and what the platform refuses for it'
  )
  t.end()
})

test('a refusal is told once for all operations, and what is said besides stays with each', t => {
  const { paths, components } = apiOf({ problems: [problems.full] })
  const { responses } = paths['/api/notes'].post
  t.same(responses['403'], { $ref: '#/components/responses/Forbidden' })
  t.same(responses['409'], {
    $ref: '#/components/responses/Conflict',
    description: '- `E_NOTES_FULL`: there are {most} notes already'
  })
  t.match(components.responses.Forbidden, { description: 'The credential may not do this.' })
  t.end()
})

test('a 429 of the operation itself is JSON, beside the one of the rate limit', t => {
  t.same(Object.keys(operation({}).responses['429'].content), ['text/plain'])
  t.same(Object.keys(operation({ problems: [problems.locked] }).responses['429'].content), [
    'text/plain',
    'application/json'
  ])
  t.end()
})

test('what an operation does stands before who may call it', t => {
  t.match(operation({ description: 'It is kept for ever.' }).description, /^It is kept for ever\.\n\nA token/)
  t.end()
})

test('headers of a success are told with it', t => {
  const responseHeaders = { 'X-Truncated': described(Type.Boolean(), 'Whether there are more.') }
  t.match(operation({ responseHeaders }).responses['200'].headers, {
    'X-Truncated': { description: 'Whether there are more.', schema: { type: 'boolean' } }
  })
  t.end()
})

test('an operation with Idempotency-Key tells what a key refuses', t => {
  t.same(operation({ idempotent: true })['x-codes'], {
    400: ['E_IDEMPOTENCY_KEY'],
    409: ['E_IDEMPOTENCY_MISMATCH', 'E_IDEMPOTENCY_IN_PROGRESS', 'E_IDEMPOTENCY_OUTCOME_UNKNOWN']
  })
  t.end()
})

test('what is no problem, no text and no header is refused', t => {
  const fault = (more: object): string => {
    try {
      operation(more)
      return ''
    } catch (error) {
      return (error as Error).message
    }
  }
  for (const wrong of [[{}], [null], [{ status: 200, code: 'E', message: '' }], 'full', [problems]])
    t.match(fault({ problems: wrong }), /problems is a list/)
  t.match(fault({ description: 1 }), /description is text/)
  t.match(fault({ responseHeaders: { a: 1 } }), /responseHeaders has a schema/)
  t.end()
})

test('a file of a page is no operation; nothing else can be left out of the description', t => {
  const page = { method: 'GET', access: allow.public('a page'), produces: 'text/html', documented: false }
  t.same(apiOf(page).paths, {})
  for (const more of [
    { method: 'POST' },
    { access: allow.token('read', { project: 'none' }) },
    { schema: { response: { 200: Type.Object({}) } } }
  ])
    t.throws(() => apiOf({ ...page, ...more }), /only a public GET without JSON may be left out/)
  t.throws(() => apiOf({ documented: 'no' }), /documented is true or false/)
  t.end()
})
