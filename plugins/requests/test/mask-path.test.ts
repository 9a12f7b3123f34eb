import { test } from 'tap'
import { maskPath } from '../record/mask-path.js'
import { draftOf } from '../record/trace.js'

const x = '[REDACTED]'

test('values of parameters that are called like secrets are masked, and nothing else', async t => {
  const cases: Readonly<Record<string, string>> = {
    '/': '/',
    '*': '*',
    '/a/b?page=2&sort=name': '/a/b?page=2&sort=name',
    '/cb?code=abc&state=CA': `/cb?code=${x}&state=CA`,
    '/?token=a&TOKEN=b&access_token=c&id_token=d&refreshToken=e': `/?token=${x}&TOKEN=${x}&access_token=${x}&id_token=${x}&refreshToken=${x}`,
    '/?api_key=a&apikey=b&API-KEY=c&key=d': `/?api_key=${x}&apikey=${x}&API-KEY=${x}&key=${x}`,
    '/?password=a&passwd=b&user[password]=c&client_secret=d': `/?password=${x}&passwd=${x}&user[password]=${x}&client_secret=${x}`,
    '/?X-Amz-Signature=a&X-Amz-Credential=b&X-Amz-Date=c&sig=d': `/?X-Amz-Signature=${x}&X-Amz-Credential=${x}&X-Amz-Date=c&sig=${x}`,
    '/?%74oken=a&to%6Ben=b&%2574oken=c': `/?%74oken=${x}&to%6Ben=${x}&%2574oken=${x}`,
    '/?user%5Bpassword%5D=a': `/?user%5Bpassword%5D=${x}`,
    '/?token=': '/?token=',
    '/?token': '/?token',
    '/?token=a=b=c': `/?token=${x}`,
    '/?a=1;token=b;c=3': `/?a=1;token=${x};c=3`,
    '/?keyword=tea&monkey=1&country=CA': '/?keyword=tea&monkey=1&country=CA',
    '/cart;jsessionid=abc/items?x=1': `/cart;jsessionid=${x}/items?x=1`,
    '/?next=%2Fcb%3Fcode%3Dabc%26a%3D1&b=2': `/?next=${x}&b=2`,
    '/?next=/cb?code=abc': `/?next=/cb?code=${x}`,
    '/?next=%2Fcb%3Fpage%3D2': '/?next=%2Fcb%3Fpage%3D2',
    '/#token=abc': `/#token=${x}`,
    '/?q=%ff%fe&token=a': `/?q=%ff%fe&token=${x}`,
    '/api/webhooks/deploy/busbar_hook_abc?x=1': `/api/webhooks/deploy/${x}?x=1`,
    '/API/Webhooks/Deploy/abc/d': `/API/Webhooks/Deploy/${x}/d`,
    '/api/webhook%73/deploy/abc': `/api/webhooks/deploy/${x}`
  }
  for (const [given, wanted] of Object.entries(cases)) t.equal(maskPath(given), wanted, given)
})

test('whatever a proxy says of a request can be stored', async t => {
  const request = {
    id: 'no id',
    hostname: 'h'.repeat(1000),
    method: 'M\0'.repeat(100),
    path: `/\ud800\0${'\u{1f600}'.repeat(5000)}`,
    statusCode: Number.NaN,
    latencyMs: Number.POSITIVE_INFINITY,
    requestSize: -5,
    responseSize: 1e300,
    clientIp: 'x'.repeat(1000),
    userAgent: `\udfff${'u'.repeat(1000)}`,
    at: Number.NaN,
    applicationId: "'; drop table"
  }
  const { trace, isUnresolved } = draftOf(request, text => text)
  t.match(trace, {
    id: /^[0-9a-f]{8}-[0-9a-f]{4}-4/,
    application_id: null,
    hostname: 'h'.repeat(255),
    status_code: 0,
    latency_ms: 0,
    request_size: 0,
    response_size: Number.MAX_SAFE_INTEGER
  })
  t.equal(isUnresolved, false)
  t.equal(trace.method.length, 32)
  t.equal(trace.path.length, 2048)
  t.equal(trace.client_ip?.length, 64)
  t.equal(trace.user_agent?.length, 512)
  for (const text of [trace.method, trace.path, trace.user_agent ?? '']) {
    t.notMatch(text, /\0/)
    t.equal(Buffer.from(text).toString(), text, 'it is UTF-8')
  }
  t.ok(Math.abs(trace.recorded_at.getTime() - Date.now()) < 60_000)
})

test('a path is cut, and no secret shows where', async t => {
  const request = {
    id: null,
    hostname: 'a.example.com',
    method: 'GET',
    statusCode: 200,
    latencyMs: 1.6,
    requestSize: null,
    responseSize: null,
    clientIp: null,
    userAgent: null,
    at: 0
  }
  for (const length of [2000, 2030, 2040, 2048, 8000, 8180, 8192]) {
    const path = `/?a=${'b'.repeat(length - 10)}&token=${'s3cr3t'.repeat(1000)}`
    const { trace, isUnresolved } = draftOf({ ...request, path }, text => text)
    t.notMatch(trace.path, /s3cr3t/, String(length))
    t.ok(trace.path.length <= 2048)
    t.equal(trace.latency_ms, 2)
    t.equal(isUnresolved, true, 'and it is looked up by hostname and path')
  }
})
