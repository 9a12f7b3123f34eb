import { isUtf8 } from 'node:buffer'
import { type BodyKind, cutText, problemTable } from 'busbar/sdk'
import type { FastifyInstance } from 'fastify'
import fastifyPlugin from 'fastify-plugin'

const problems = problemTable({
  encoded: [
    415,
    'E_BODY_ENCODING',
    'a body in content-encoding {encoding} is not taken',
    'send it as it is, without that header'
  ],
  characters: [
    400,
    'E_BODY_INVALID',
    'the body is not UTF-8, as JSON is to be',
    { field: '', remedy: 'encode it in UTF-8' }
  ],
  forbiddenKey: [
    400,
    'E_BODY_INVALID',
    'the body has a key "__proto__", or "prototype" in "constructor", which is not accepted in JSON',
    { field: '', remedy: 'leave it out' }
  ]
})

function isJson(text: string): boolean {
  try {
    JSON.parse(text)
    return true
  } catch {
    return false
  }
}

/** How the bodies of the routes in one scope are read. */
export const bodyParser = fastifyPlugin(
  async (scope: FastifyInstance, { kind }: { kind: BodyKind }) => {
    if (kind === 'json') {
      addJsonParser(scope)
      return
    }
    scope.removeAllContentTypeParsers()
    if (kind === 'raw')
      scope.addContentTypeParser('*', { parseAs: 'buffer' }, (_request, body, done) => {
        done(null, body)
      })
    else if (kind === 'stream')
      scope.addContentTypeParser('*', (_request, body, done) => {
        done(null, body)
      })
    else
      scope.addContentTypeParser('*', (_request, body, done) => {
        body.resume()
        done(null)
      })
  },
  { name: 'busbar-body' }
)

function addJsonParser(scope: FastifyInstance): void {
  const parse = scope.getDefaultJsonParser('error', 'error')
  scope.removeContentTypeParser(['text/plain', 'application/json'])
  // Many clients name the type whether or not they send a body.
  scope.addContentTypeParser('application/json', { parseAs: 'buffer' }, (request, bytes: Buffer, done) => {
    const encoding = request.headers['content-encoding'] ?? 'identity'
    if (encoding.toLowerCase() !== 'identity') done(problems.encoded({ encoding: cutText(encoding, 40) }))
    else if (bytes.length === 0) done(null, undefined)
    // What is not would become one and the same character: two passwords could be equal that are not.
    else if (!isUtf8(bytes)) done(problems.characters())
    else {
      const text = bytes.toString()
      parse(request, text, (error, value) => {
        done(error === null || !isJson(text) ? error : problems.forbiddenKey(), value)
      })
    }
  })
}
