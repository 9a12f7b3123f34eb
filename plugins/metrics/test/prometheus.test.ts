/** Figures of the platform for Prometheus. */
import { createServer } from 'node:http'
import { type AddressInfo, connect } from 'node:net'
import { definePlugin } from 'busbar/sdk'
import { createTestKernel, type TestKernel, until } from 'busbar/sdk/testing'
import { type Test, test } from 'tap'
import { type Figure, figureSources } from '../api.js'
import { isAskedFor } from '../prometheus/asked-host.js'
import { readBind } from '../prometheus/bind-address.js'
import { takeFigures } from '../prometheus/contributed-figures.js'
import { histogram } from '../prometheus/figure.js'
import { prometheusText } from '../prometheus/text-format.js'

/** The lines of the text with values, by what is before the value. */
const valuesOf = (text: string): ReadonlyMap<string, number> =>
  new Map(
    text
      .split('\n')
      .filter(line => line !== '' && !line.startsWith('#'))
      .map(line => {
        const at = line.lastIndexOf(' ')
        return [line.slice(0, at), Number(line.slice(at + 1))]
      })
  )

const scrape = async (k: TestKernel): Promise<ReadonlyMap<string, number>> => {
  k.resetRateLimits()
  return valuesOf((await (await k.as.token('metrics')).get('/metrics')).body)
}

test('figures of one text', async t => {
  await t.test('have their help, their type and their values, with labels as they are written', async t => {
    const { text, type } = await prometheusText([
      { name: 'a_total', help: 'A\nsecond line', type: 'counter', values: [{ value: 1 }] },
      {
        name: 'b',
        help: 'B',
        type: 'gauge',
        values: [{ labels: { who: 'a "quoted" \\ name\nof two lines', of: 'x' }, value: 0.5 }]
      }
    ])
    t.equal(type, 'text/plain; version=0.0.4; charset=utf-8')
    t.equal(
      text,
      `# HELP a_total A\\nsecond line
# TYPE a_total counter
a_total 1

# HELP b B
# TYPE b gauge
b{who="a \\"quoted\\" \\\\ name\\nof two lines",of="x"} 0.5
`
    )
  })

  await t.test('a histogram counts what is at most as large as each bound', async t => {
    const { text } = await prometheusText([
      histogram('h', 'H', [0.1, 1], [{ labels: { route: '/x' }, counts: [2, 1, 3], sum: 12.5 }])
    ])
    t.match(text, '# TYPE h histogram')
    t.same(
      [...valuesOf(text)],
      [
        ['h_bucket{le="0.1",route="/x"}', 2],
        ['h_bucket{le="1",route="/x"}', 3],
        ['h_bucket{le="+Inf",route="/x"}', 6],
        ['h_sum{route="/x"}', 12.5],
        ['h_count{route="/x"}', 6]
      ]
    )
  })
})

test('of an answer of other plugins only what fits is taken', t => {
  const figure: Figure = { name: 'things', help: 'Things', type: 'gauge', values: [{ value: 1 }] }
  t.same(takeFigures([figure]), [{ ...figure, values: [{ value: 1, labels: {} }] }])
  t.same(takeFigures([]), [])
  const own = { ...figure, values: [{ value: 1, labels: { kind: 'a' } }] }
  t.same(takeFigures([own]), [own])
  const hostile = {
    ...figure,
    help: 'a\u001b[31m\nb',
    values: [{ value: 1, labels: { kind: '\0"\n\u009b\ud800' } }]
  }
  t.match(takeFigures([hostile]), [
    { help: 'a\ufffd[31m\nb', values: [{ labels: { kind: '\ufffd"\n\ufffd\ufffd' } }] }
  ])
  for (const bad of [
    undefined,
    figure,
    [undefined],
    [{ ...figure, name: 'Upper' }],
    [{ ...figure, name: 'a b' }],
    [{ ...figure, name: 'a'.repeat(101) }],
    [{ ...figure, help: 'x'.repeat(501) }],
    [{ ...figure, type: 'histogram' }],
    [{ ...figure, values: [{ value: Number.NaN }] }],
    [{ ...figure, values: [{ value: '1' }] }],
    [{ ...figure, values: [{ value: 1, labels: { 'a"b': 'c' } }] }],
    [{ ...figure, values: [{ value: 1, labels: { a: 1 } }] }],
    [{ ...figure, values: [{ value: 1 }, { value: 2, labels: {} }] }],
    [
      {
        ...figure,
        values: [
          { value: 1, labels: { a: '1', b: '\0' } },
          { value: 1, labels: { b: '\u0001', a: '1' } }
        ]
      }
    ],
    [{ ...figure, values: Array.from({ length: 1001 }, () => ({ value: 1 })) }],
    Array.from({ length: 201 }, () => figure)
  ])
    t.equal(takeFigures(bad), undefined, JSON.stringify(bad)?.slice(0, 60))
  t.end()
})

test('an address to listen on is read as it is written, and nothing else is one', t => {
  t.same(readBind('127.0.0.1:9100'), { host: '127.0.0.1', port: 9100 })
  t.same(readBind('[::1]:9100'), { host: '::1', port: 9100 })
  t.same(readBind('metrics.internal:1'), { host: 'metrics.internal', port: 1 })
  t.same(readBind(':9100'), { host: '::', port: 9100 })
  for (const bad of [
    '',
    '9100',
    '127.0.0.1',
    '127.0.0.1:0',
    '127.0.0.1:65536',
    '[::g]:1',
    'a b:1',
    '::1:9100x',
    'h:'
  ])
    t.equal(readBind(bad), undefined, bad)
  t.end()
})

test('the platform tells its figures', async t => {
  const figures: Figure[] = [
    {
      name: 'things_total',
      help: 'Things',
      type: 'counter',
      values: [{ labels: { kind: 'good' }, value: 7 }]
    },
    { name: 'websockets', help: 'A name that is taken', type: 'gauge', values: [{ value: 99 }] }
  ]
  const contribution = { answer: (): unknown => figures }
  const k = await createTestKernel({
    inline: [
      {
        manifest: { id: 'counts', requires: { metrics: '^0.1.0' } },
        definition: definePlugin({
          id: 'counts',
          contributes: contribute => {
            contribute(figureSources, 'counts', { figures: () => contribution.answer() as Figure[] })
          }
        })
      }
    ]
  })
  t.teardown(() => k.close())
  const admin = await k.as.session()

  await t.test('to admins, with the scope metrics', async t => {
    const answer = await (await k.as.token('metrics')).get('/metrics')
    t.match(answer, {
      status: 200,
      headers: { 'content-type': 'text/plain; version=0.0.4; charset=utf-8', 'cache-control': 'no-store' }
    })
    t.equal((await k.as.anonymous().get('/metrics')).status, 401)
    t.match(await (await k.as.session('member')).get('/metrics'), {
      status: 403,
      body: { code: 'E_FORBIDDEN' }
    })
    t.equal((await admin.get('/metrics')).status, 200)
  })

  await t.test('requests by route template and status, with how long they took', async t => {
    await admin.get('/api/projects/0b0e7a52-1c3d-4a5b-8c7d-9e0f1a2b3c4d')
    await admin.get('/api/nowhere')
    const values = await scrape(k)
    t.equal(
      values.get(
        'busbar_http_requests_total{plugin="projects",method="GET",route="/api/projects/:projectId",status="404"}'
      ),
      1
    )
    t.equal(
      values.get('busbar_http_request_duration_seconds_count{method="GET",route="/api/projects/:projectId"}'),
      1
    )
    t.equal(
      values.get(
        'busbar_http_request_duration_seconds_bucket{le="+Inf",method="GET",route="/api/projects/:projectId"}'
      ),
      1
    )
    t.ok((values.get('busbar_http_unrouted_requests_total{status="404"}') ?? 0) >= 1)
    t.notMatch([...values.keys()].join('\n'), '0b0e7a52')
  })

  await t.test('what the process, the pool, the sockets, the jobs and the bus are doing', async t => {
    const socket = await k.socket(admin)
    await until(async () => (await scrape(k)).get('busbar_websockets') === 1, 'the socket')
    const values = await scrape(k)
    for (const name of [
      'process_resident_memory_bytes',
      'process_cpu_seconds_total',
      'process_start_time_seconds',
      'process_open_fds',
      'nodejs_heap_size_used_bytes',
      'nodejs_eventloop_lag_mean_seconds',
      'nodejs_eventloop_lag_p99_seconds',
      'busbar_http_requests_under_way',
      'busbar_http_connections',
      'busbar_database_pool_connections_max',
      'busbar_database_pool_connections{state="idle"}',
      'busbar_database_pool_waiting',
      'busbar_database_plugin_connections{plugin="metrics"}',
      'busbar_jobs{lane="long",state="pending"}',
      'busbar_jobs{lane="short",state="failed"}',
      'busbar_bus_messages_total',
      'busbar_bus_messages_dropped_total',
      'busbar_bus_client_messages_dropped_total',
      'busbar_bus_clients_dropped_total',
      'busbar_event_loop_stalls_total',
      'busbar_plugin_state{plugin="metrics",state="running"}'
    ])
      t.ok((values.get(name) ?? -1) >= 0, name)
    t.ok([...values.keys()].some(key => /^busbar_info\{version="\d/.test(key)))
    t.ok([...values.values()].every(Number.isFinite))
    await socket.close()
  })

  await t.test('and those of other plugins, under names that are taken by nobody', async t => {
    const values = await scrape(k)
    t.equal(values.get('busbar_things_total{kind="good"}'), 7)
    t.not(values.get('busbar_websockets'), 99)
  })

  await t.test('a plugin that fails, or answers anything else, is left out', async t => {
    const usual = contribution.answer
    for (const answer of [
      () => {
        throw new Error('no figures today')
      },
      () => 'many',
      () => [{ name: 'busbar', help: 1 }]
    ]) {
      contribution.answer = answer
      const values = await scrape(k)
      t.equal(values.get('busbar_things_total{kind="good"}'), undefined)
      t.ok(values.has('process_cpu_seconds_total'))
    }
    contribution.answer = usual
  })
})

/** A port that was free a moment ago. */
async function freePort(): Promise<number> {
  const server = createServer()
  await new Promise<void>(resolve => {
    server.listen(0, '127.0.0.1', resolve)
  })
  const { port } = server.address() as AddressInfo
  await new Promise(resolve => server.close(resolve))
  return port
}

/** What comes back for some bytes, until the other side closes. */
const exchange = async (port: number, bytes: string): Promise<string> =>
  await new Promise((resolve, reject) => {
    let text = ''
    const socket = connect(port, '127.0.0.1', () => socket.write(bytes))
    socket.setEncoding('utf8')
    socket.on('data', chunk => {
      text += String(chunk)
    })
    socket.on('error', reject)
    socket.on('close', () => {
      resolve(text)
    })
  })

const kernelWith = async (t: Test, bind: string): Promise<TestKernel> => {
  const k = await createTestKernel({ environment: { METRICS_BIND: bind } })
  t.teardown(() => k.close())
  return k
}

test('METRICS_BIND serves them without a credential, and nothing else', async t => {
  const port = await freePort()
  const k = await kernelWith(t, `127.0.0.1:${port}`)
  const url = `http://127.0.0.1:${port}`
  await until(
    async () =>
      await fetch(`${url}/metrics`).then(
        ({ ok }) => ok,
        () => false
      ),
    'the listener'
  )
  const answer = await fetch(`${url}/metrics?of=anything`)
  t.equal(answer.headers.get('content-type'), 'text/plain; version=0.0.4; charset=utf-8')
  t.ok(valuesOf(await answer.text()).has('process_cpu_seconds_total'))
  t.equal((await fetch(`${url}/api/projects`)).status, 404)
  t.equal((await fetch(`${url}/`)).status, 404)
  t.equal((await fetch(`${url}/metrics`, { method: 'POST', body: 'x' })).status, 405)
  const head = await fetch(`${url}/metrics`, { method: 'HEAD' })
  t.equal(head.status, 200)
  t.equal(await head.text(), '')
  const askedAs = async (host: string): Promise<string> =>
    (await exchange(port, `GET /metrics HTTP/1.1\r\nHost: ${host}\r\nConnection: close\r\n\r\n`)).slice(9, 12)
  for (const host of ['localhost', `127.0.0.1:${port}`, '[::1]', 'busbar', 'busbar.localhost:9100'])
    t.equal(await askedAs(host), '200', host)
  t.equal(await askedAs('rebound.example.com'), '421', 'a name of the internet that leads to this machine')
  const ahead = await exchange(port, 'GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n'.repeat(50))
  t.equal(ahead.match(/HTTP\/1\.1 200/g)?.length, 1, 'a connection has one answer')
  t.match(await exchange(port, 'nonsense\r\n\r\n'), /^HTTP\/1\.1 400/)
  const admin = await k.as.session()
  const states = new Set<unknown>()
  await k.reload('metrics')
  await until(async () => {
    states.add((await admin.get('/api/plugins/metrics')).body.state)
    return await fetch(`${url}/metrics`).then(
      ({ ok }) => ok,
      () => false
    )
  }, 'the listener of the version that was reloaded')
  t.same([...states], ['running'], 'that it waits for the address of the version before is no fault')
  await k.disable('metrics')
  await t.rejects(fetch(`${url}/metrics`), 'it is off with its plugin')
})

test('an address that is taken makes the plugin degraded, until it is free', async t => {
  const other = createServer()
  await new Promise<void>(resolve => {
    other.listen(0, '127.0.0.1', resolve)
  })
  t.teardown(() => {
    other.close()
  })
  const { port } = other.address() as AddressInfo
  const k = await kernelWith(t, `127.0.0.1:${port}`)
  const admin = await k.as.session()
  const plugin = async () => (await admin.get('/api/plugins/metrics')).body
  await until(
    async () => /METRICS_BIND: cannot listen on 127\.0\.0\.1/.test((await plugin()).reason ?? ''),
    'the reason'
  )
  t.match(await plugin(), { state: 'degraded' })
  t.equal((await admin.get('/metrics')).status, 200)
  other.close()
  await until(async () => (await plugin()).state === 'running', 'the address')
  t.equal((await fetch(`http://127.0.0.1:${port}/metrics`)).status, 200)
})

test('what is no address makes the plugin misconfigured, and names the variable', async t => {
  const k = await kernelWith(t, 'everywhere')
  t.match((await (await k.as.session()).get('/api/plugins/metrics')).body, {
    state: 'misconfigured',
    reason: /METRICS_BIND is "everywhere"; it takes an address and a port/
  })
})

test('on the network everybody may ask, by whatever name', async t => {
  for (const bind of ['0.0.0.0', '192.0.2.1', 'metrics.example.com'])
    t.ok(isAskedFor(bind, 'metrics.example.com:9100'), bind)
  for (const bind of ['127.0.0.1', '127.1.2.3', '::1', 'localhost'])
    t.notOk(isAskedFor(bind, 'a.example.com'), bind)
  t.ok(isAskedFor('127.0.0.1', undefined), 'HTTP/1.0 asks without')
})
