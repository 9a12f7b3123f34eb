import { test } from 'tap'
import { requestMembers } from '../../core/http/request-line.js'
import { createLog } from '../../core/log/log.js'
import { createRedactor } from '../../core/log/redactor.js'

const usual = {
  requestId: 'a1-2',
  method: 'GET',
  path: '/api/projects',
  status: 200,
  ms: 1.5,
  ip: '127.0.0.1',
  user: '9d1d1c5e-1111-4222-8333-444455556666'
}

test('the line of a request has the same members however it is made', async t => {
  const lines: string[] = []
  const log = createLog({
    level: 'info',
    format: 'json',
    redactor: createRedactor(),
    destination: { write: line => lines.push(line) }
  }).child({ plugin: 'x' })
  for (const request of [
    usual,
    { ...usual, user: undefined, ip: 'fe80::1%eth0' },
    { ...usual, ms: 0 },
    { ...usual, ms: 12 },
    { ...usual, ms: 60_000.1 },
    { ...usual, path: '/a"b\\c\u007f' },
    { ...usual, path: `/${'a'.repeat(600)}` },
    { ...usual, ip: 'not "an" address' }
  ]) {
    const from = lines.length
    log.info(requestMembers(request), 'request')
    log.info({ ...request }, 'request')
    // Of pino itself.
    log.child({}, { serializers: { unused: () => 1 } }).info(requestMembers(request), 'request')
    const [made, ordinary, ofPino] = lines.slice(from).map(line => line.replace(/"time":"[^"]*"/, '"time":0'))
    t.equal(made, ordinary)
    t.equal(ofPino, ordinary)
  }
})

test('a secret in the path of a request is taken out of its line', async t => {
  const lines: string[] = []
  const redactor = createRedactor()
  redactor.add(['tulip-and-rose-42'])
  const log = createLog({
    level: 'info',
    format: 'json',
    redactor,
    destination: { write: line => lines.push(line) }
  })
  log.info(requestMembers({ ...usual, path: '/api/x/tulip-and-rose-42/y' }), 'request')
  t.match(JSON.parse(lines[0] ?? ''), { path: '/api/x/[REDACTED]/y', ms: 1.5, msg: 'request' })
})
