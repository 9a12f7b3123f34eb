import { test } from 'tap'
import { openForwarder } from '../forwarder.js'
import { speak, startOrigin } from './origin.js'

const here = { host: '127.0.0.1', port: 0 }

test('a body in thousands of tiny chunks ends its connection; one in pieces of some bytes passes', async t => {
  let pieces = 0
  let bytes = 0
  const origin = await startOrigin((incoming, response) => {
    incoming.on('data', (chunk: Buffer) => {
      pieces += 1
      bytes += chunk.length
    })
    incoming.on('error', () => {})
    incoming.on('end', () => response.end('whole'))
  })
  const forwarder = await openForwarder(here, origin.target)
  t.teardown(() => Promise.all([forwarder.close(), origin.close()]))
  const post = 'POST / HTTP/1.1\r\nHost: a\r\nConnection: close\r\nTransfer-Encoding: chunked\r\n\r\n'

  const tiny = await speak(forwarder.port, `${post}${'1\r\na\r\n'.repeat(50_000)}0\r\n\r\n`)
  t.ok(tiny.isClosed)
  t.match(tiny.said, /^(HTTP\/1\.1 400 |$)/)
  t.ok(pieces < 5_000, `${pieces} of 50000 were handed on`)

  bytes = 0
  const small = `${post}${`20\r\n${'a'.repeat(32)}\r\n`.repeat(50_000)}0\r\n\r\n`
  t.match((await speak(forwarder.port, small, { silenceMs: 30_000 })).said, /^HTTP\/1\.1 200 [\s\S]*whole/)
  t.equal(bytes, 50_000 * 32)
})
