import { request } from 'node:http'
import { until } from 'busbar/sdk/testing'
import { test } from 'tap'
import { requireEngine } from '../../../lab/engine.js'
import { engine, openLab, sample } from './deploy-lab.js'

const slowBuild =
  'FROM node:20\nWORKDIR /app\nCOPY . .\nRUN echo building && sleep 2 && echo built\nCMD ["node", "server.js"]\n'
const endlessBuild = (mark: string): string =>
  `FROM node:20\nCOPY . .\nRUN echo ${mark} && echo the build has begun && sleep 600\n`

test('deployments live', async t => {
  if (!(await requireEngine(t))) return
  const lab = await openLab()
  t.teardown(() => lab.close())
  const admin = await lab.k.as.session()
  const web = await lab.application('web', sample('one'))
  t.match(await web.deployed(), { status: 'success' })
  /** Server-Sent Events until they end. */
  const streamed = async (deploymentId: string): Promise<string> =>
    await new Promise((resolve, reject) => {
      request(
        `${lab.k.url}${web.path}/deployments/${deploymentId}/build-logs`,
        { headers: admin.credential },
        answer => {
          let text = ''
          t.match(answer.headers['content-type'], /^text\/event-stream/)
          answer
            .setEncoding('utf8')
            .on('data', (chunk: string) => {
              text += chunk
            })
            .once('end', () => resolve(text))
            .once('error', reject)
        }
      )
        .once('error', reject)
        .end()
    })

  await t.test(
    'the build log is on its channel while it is written, and done comes once, after the record',
    async t => {
      await web.push(sample('one', 'ok', slowBuild))
      const socket = await lab.k.socket(admin)
      const deployment = await web.deploy()
      const channel = `build-logs:${deployment.id}`
      const stepsChannel = `build-steps:${deployment.id}`
      socket.subscribe(channel)
      socket.subscribe(stepsChannel)
      const sse = streamed(deployment.id)
      const { data } = await socket.next(
        frame => frame.channel === channel && frame.event === 'log' && frame.data.msg === 'built',
        20_000
      )
      t.match(data, { ts: /^\d{4}-\d\d-\d\dT.*\.\d{3}Z$/, level: 'info', stream: 'stdout', msg: 'built' })
      const done = await socket.next(frame => frame.channel === channel && frame.event === 'done', 20_000)
      t.equal(done.data, null)
      const { body } = await admin.get(`${web.path}/deployments/${deployment.id}`)
      t.notMatch(body.status, /pending|building/, 'the record is before done')
      t.match(body.build_logs, /Successfully tagged/)
      await web.ended(deployment.id)
      await socket.next(frame => frame.channel === stepsChannel && frame.event === 'done', 20_000)
      t.equal(socket.frames.filter(frame => frame.event === 'done').length, 2, 'once on each channel')
      const told = socket.frames.filter(frame => frame.channel === stepsChannel && frame.event === 'step')
      t.match(told.at(-1)?.data, { number: 6, name: /^\[6\/6\] CMD/, state: 'done', ended_at: String })
      const steps = await admin.get(`${web.path}/deployments/${deployment.id}/build-steps`)
      t.match(steps.body, [
        { number: 1, name: /^\[1\/6\] FROM node:20/, state: 'done' },
        { number: 2, name: /^\[2\/6\] LABEL/ },
        { number: 3, name: '[3/6] WORKDIR /app' },
        { number: 4, name: '[4/6] COPY . .', state: 'done' },
        {
          number: 5,
          name: /^\[5\/6\] RUN echo building/,
          state: 'done',
          started_at: String,
          ended_at: String
        },
        { number: 6, name: /^\[6\/6\] CMD/, state: 'done' }
      ])
      t.equal(body.build_engine, 'classic')
      await socket.close()

      const live = await sse
      t.match(live, /data: \{"ts":".*","level":"info","stream":"stdout","msg":"built"\}\n\n/)
      t.match(live, /event: done\ndata: build log stream ended\n\n$/)
      const replayed = await streamed(deployment.id)
      t.match(replayed, /"msg":"Cloning .*\n\n[\s\S]*event: done\ndata: build success\n\n$/)
      t.notMatch(replayed, /event: error/)
    }
  )

  await t.test('a second deploy while one is active is a 409 and leaves no record', async t => {
    await web.push(sample('one'))
    const first = await web.deploy()
    const count = (await admin.get(`${web.path}/deployments`)).body.length
    const second = await admin.post(`${web.path}/deploy`)
    t.match(second, {
      status: 409,
      body: { error: 'a deployment is already in progress for this application', code: 'E_DEPLOYMENT_ACTIVE' }
    })
    t.equal((await admin.get(`${web.path}/deployments`)).body.length, count)
    for (const verb of ['restart', 'stop'])
      t.match(await admin.post(`${web.path}/${verb}`), {
        status: 409,
        body: { error: /deployment is in progress/ }
      })
    await web.ended(first.id)
    t.equal((await admin.post(`${web.path}/restart`)).status, 200)
  })

  await t.test('the same Idempotency-Key gets the same deployment', async t => {
    await web.push(sample('one'))
    const send = async () =>
      await admin.post(`${web.path}/deploy`, undefined, { headers: { 'idempotency-key': 'once' } })
    const first = await send()
    t.match(first, { status: 202, body: { idempotency_key: 'once' } })
    t.equal((await send()).body.id, first.body.id)
    await web.ended(first.body.id)
    t.equal((await send()).body.id, first.body.id)
  })

  await t.test(
    'a cancelled build is really gone, and the deployment ends failed with the word cancelled',
    async t => {
      const before = await web.read()
      const served = await (await fetch(before.direct_url)).text()
      await web.push(sample('never', 'ok', endlessBuild(web.slug)))
      const socket = await lab.k.socket(admin)
      const deployment = await web.deploy()
      socket.subscribe(`build-logs:${deployment.id}`)
      await socket.next(frame => frame.event === 'log' && frame.data.msg === 'the build has begun', 20_000)
      const running = await building(`echo ${web.slug} `)
      t.equal(running.length, 1)
      const answer = await admin.post(`${web.path}/deployments/${deployment.id}/cancel`)
      t.match(answer, { status: 202, body: { id: deployment.id } })
      const ended = await web.ended(deployment.id)
      t.match(ended, { status: 'failed', error_message: 'cancelled', build_ended_at: String })
      await socket.next(frame => frame.event === 'done')
      await until(
        async () => (await building(`echo ${web.slug} `)).length === 0,
        'the build container is gone',
        3000
      )
      t.match(await web.read(), { status: before.status, direct_url: before.direct_url })
      t.equal(await (await fetch(before.direct_url)).text(), served)
      t.match(await admin.post(`${web.path}/deployments/${deployment.id}/cancel`), {
        status: 409,
        body: { error: /has ended already/ }
      })
      t.match(
        await streamed(deployment.id),
        /event: error\ndata: cancelled\n\nevent: done\ndata: build failed\n\n$/
      )
      await socket.close()
    }
  )

  await t.test('a deploy whose container is being proven can be cancelled too', async t => {
    await admin.put(`${web.path}/health-check`, { type: 'http', path: '/health', timeout_seconds: 60 })
    await web.push(sample('never', 'unhealthy'))
    const deployment = await web.deploy()
    await until(
      async () => (await admin.get(`${web.path}/deployments/${deployment.id}`)).body.step === 'prove-healthy',
      'it is being proven'
    )
    await admin.post(`${web.path}/deployments/${deployment.id}/cancel`)
    t.match(await web.ended(deployment.id, 5000), {
      status: 'failed',
      error_message: 'cancelled',
      health_status: null
    })
    t.equal((await web.containers()).length, 1)
    await admin.put(`${web.path}/health-check`, { type: 'none' })
  })

  await t.test('two hundred thousand lines and binary output do not hurt', async t => {
    await web.push(
      sample(
        'loud',
        'ok',
        'FROM node:20\nWORKDIR /app\nCOPY . .\nRUN node -e "for (let i = 0; i < 200000; i++) console.log(\'noise \' + i)"; head -c 300000 /dev/urandom\nCMD ["node", "server.js"]\n'
      )
    )
    const ended = await web.deployed()
    t.equal(ended.status, 'success')
    t.ok(Buffer.byteLength(ended.build_logs) <= 1024 * 1024, `${Buffer.byteLength(ended.build_logs)} bytes`)
    for (const line of ended.build_logs.trimEnd().split('\n')) JSON.parse(line)
    t.match(ended.build_logs, /"msg":"noise 0"/)
    t.match(ended.build_logs, /lines \(\d+\.\d MiB\) were left out here/)
    t.match(ended.build_logs, /Successfully tagged/)
  })

  async function building(command: string): Promise<string[]> {
    return (await engine.listContainers())
      .filter(container => container.Command.includes(command))
      .map(({ Id }) => Id)
  }
})
