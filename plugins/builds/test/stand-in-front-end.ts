import type { Test } from 'tap'
import { makeImage } from './hand-made-image.js'

/**
 * Stands in for railpack's front-end, which can be had only from the internet. It speaks to BuildKit as every front-end does, by
 * gRPC over its standard input and output, and has it build `front-end.Dockerfile` of the context, with what it was given itself:
 * `CACHE_KEY` and the like as build arguments, the folder of the plan as the image `plan`.
 */
const program = `
const http2 = require('node:http2'), { Duplex } = require('node:stream')
const field = (number, type) => Buffer.from([number << 3 | type])
const varint = value => { const bytes = []; for (; value > 127; value >>= 7) bytes.push(value & 127 | 128); return Buffer.from([...bytes, value]) }
const bytes = (number, content) => Buffer.concat([field(number, 2), varint(Buffer.byteLength(content)), Buffer.from(content)])
const truth = number => Buffer.concat([field(number, 0), varint(1)])
/** The content of a field of a message that has only fields with a length. */
const taken = (message, wanted) => {
  for (let at = 0; at < message.length;) {
    const number = message[at++] >> 3
    let length = 0
    for (let shift = 0, more = true; more; shift += 7) { more = message[at] > 127; length |= (message[at++] & 127) << shift }
    if (number === wanted) return message.subarray(at, at + length)
    at += length
  }
}
const options = Object.entries(process.env).filter(([name]) => name.startsWith('BUILDKIT_FRONTEND_OPT_'))
  .map(([, option]) => [option.slice(0, option.indexOf('=')), option.slice(option.indexOf('=') + 1)])
const session = http2.connect('http://localhost', { createConnection: () => Duplex.from({ readable: process.stdin, writable: process.stdout }) })
const call = (method, message) => new Promise((resolve, reject) => {
  const stream = session.request({ ':method': 'POST', ':path': '/moby.buildkit.v1.frontend.LLBBridge/' + method, 'content-type': 'application/grpc', te: 'trailers' })
  const chunks = []
  let status = {}
  stream.on('response', headers => { status = { ...status, ...headers } }).on('trailers', headers => { status = { ...status, ...headers } })
  stream.on('data', chunk => chunks.push(chunk)).on('error', reject).on('end', () => {
    if (status['grpc-status'] === '0') resolve(Buffer.concat(chunks).subarray(5))
    else reject(new Error(decodeURIComponent(status['grpc-message'] ?? 'no answer')))
  })
  const head = Buffer.alloc(5)
  head.writeUInt32BE(message.length, 1)
  stream.end(Buffer.concat([head, message]))
})
const said = process.argv.slice(2).map(config => bytes(10, Buffer.concat([bytes(1, 'containerimage.config'), bytes(2, JSON.stringify(eval('(' + config + ')')))])))
const main = async () => {
  await call('Ping', Buffer.alloc(0))
  // A shell hands no others on.
  const variable = name => name.replace(/^build-arg:.*/, found => 'build-arg:' + found.slice(10).toUpperCase().replace(/-/g, '_'))
  const asked = { ...Object.fromEntries(options.filter(([name]) => /^build-arg:(?!BUILDKIT_)|^context:/.test(name)).map(([name, value]) => [variable(name), value])),
    filename: 'front-end.Dockerfile', dockerfilekey: 'context', cmdline: 'dockerfile.v0', 'context:plan': 'local:dockerfile',
    'build-arg:PLAN_FILE': Object.fromEntries(options).filename }
  const request = [bytes(2, 'dockerfile.v0'), ...Object.entries(asked).map(([name, value]) => bytes(3, Buffer.concat([bytes(1, name), bytes(2, value)]))), truth(5), truth(6)]
  const answer = await call('Solve', Buffer.concat(request)).then(
    solved => bytes(1, Buffer.concat([taken(solved, 3), ...said])), error => bytes(2, Buffer.concat([field(1, 0), varint(2), bytes(2, error.message)])))
  await call('Return', answer)
}
main().then(() => process.exit(0), error => { console.error(error); process.exit(1) })
`

/** `config`: an expression for what it says of the image that it has had built, whatever that is. */
export async function makeFrontEnd(t: Test, name: string, config?: string): Promise<void> {
  const argv = ['node', '/front-end.cjs', ...(config === undefined ? [] : [config])]
  const written = `require("fs").writeFileSync("/front-end.cjs", Buffer.from("${Buffer.from(program).toString('base64')}", "base64"))`
  await makeImage(
    t,
    name,
    `FROM node:20\nRUN node -e '${written}'\nENTRYPOINT ${JSON.stringify(argv)}\nLABEL moby.buildkit.frontend.caps="moby.buildkit.frontend.contexts"\n`
  )
}
