import { until } from 'busbar/sdk/testing'
import { test } from 'tap'
import { requireEngine } from '../../../lab/engine.js'
import { engine, type Mode, openLab, sample } from './deploy-lab.js'

test('deploys that fail', async t => {
  if (!(await requireEngine(t))) return
  const lab = await openLab()
  t.teardown(() => lab.close())
  const admin = await lab.k.as.session()
  const web = await lab.application('web', sample('good'))
  t.equal((await web.deployed()).status, 'success')
  const address: string = (await web.read()).direct_url
  const before = await web.containers()

  /** The good version serves as if nothing had been tried. */
  const stillServes = async (): Promise<void> => {
    t.equal(await (await fetch(address)).text(), 'good')
    t.same(
      (await web.containers()).map(({ Id, Names }) => [Id, Names]),
      before.map(({ Id, Names }) => [Id, Names])
    )
    t.match(await web.read(), { status: 'running', direct_url: address })
  }

  const cases: ReadonlyArray<{ mode: Mode; check?: object; expected: object }> = [
    {
      mode: 'exit',
      expected: {
        step: 'prove-healthy',
        error_message: /exited with code 3/,
        evidence: /cannot reach the database/,
        health_status: 'failing'
      }
    },
    {
      mode: 'silent',
      expected: {
        step: 'prove-healthy',
        error_message: /nothing listened on port 8080/,
        remedy: /0\.0\.0\.0/
      }
    },
    {
      mode: 'other-port',
      expected: {
        step: 'prove-healthy',
        error_message: /the container listens on 3000/,
        remedy: /container_port/,
        evidence: /listening/
      }
    },
    {
      mode: 'unhealthy',
      check: { type: 'http', path: '/health', timeout_seconds: 3 },
      expected: {
        step: 'prove-healthy',
        error_message:
          /GET \/health on port 8080 did not answer a 2xx within 3 s; at last it answered 500: no database/,
        health_status: 'failing'
      }
    },
    {
      mode: 'ok',
      check: {
        type: 'command',
        command: 'echo the check says no; exit 1',
        interval_seconds: 1,
        retries: 1,
        timeout_seconds: 2
      },
      expected: {
        step: 'prove-healthy',
        error_message: /health command failed/,
        evidence: /the check says no/
      }
    },
    {
      mode: 'ok',
      check: { type: 'http', path: '/away', timeout_seconds: 1 },
      expected: {
        error_message: /at last it answered 301 and leads to https:\/\/example\.com\/, which is not followed/
      }
    },
    {
      mode: 'ok',
      check: { type: 'http', path: '/round', timeout_seconds: 1 },
      expected: { error_message: /at last it answered 302 and leads to .*\/round/ }
    },
    {
      mode: 'ok',
      check: { type: 'http', path: '/moved', expect_status: 301, timeout_seconds: 1 },
      expected: { error_message: /did not answer 301 within 1 s; at last it answered 302/ }
    }
  ]
  for (const { mode, check, expected } of cases) {
    await t.test(
      `a version that is ${mode}${check === undefined ? '' : ` with ${JSON.stringify(check)}`} is removed and the old one is left alone`,
      async t => {
        t.equal((await admin.put(`${web.path}/health-check`, check ?? { type: 'none' })).status, 200)
        await web.push(sample('bad', mode))
        const ended = await web.deployed()
        t.match(ended, { status: 'failed', finished_at: String, ...expected })
        t.match(JSON.parse(ended.build_logs.trimEnd().split('\n').at(-1)), {
          level: 'error',
          msg: ended.error_message
        })
        await stillServes()
      }
    )
  }

  await t.test('a health check that succeeds is recorded as passing', async t => {
    await admin.put(`${web.path}/health-check`, { type: 'http', path: '/health', timeout_seconds: 10 })
    await web.push(sample('good', 'slow'))
    const ended = await web.deployed()
    t.match(ended, {
      status: 'success',
      health_status: 'passing',
      health_message: 'GET /health answered 200',
      health_checked_at: String
    })
    t.match((await admin.get(`${web.path}/health`)).body, {
      deployment_id: ended.id,
      deploy_status: 'success',
      status: 'passing'
    })
    await admin.put(`${web.path}/health-check`, { type: 'http', path: '/moved', timeout_seconds: 10 })
    t.match(
      await web.deployed(),
      { status: 'success', health_status: 'passing', health_message: 'GET /moved answered 200' },
      'a redirect within the container is followed'
    )
    await admin.put(`${web.path}/health-check`, {
      type: 'http',
      path: '/moved',
      expect_status: 302,
      timeout_seconds: 10
    })
    t.match(
      await web.deployed(),
      { status: 'success', health_message: 'GET /moved answered 302' },
      'unless it is what is wanted'
    )
    await admin.put(`${web.path}/health-check`, {
      type: 'command',
      command: 'test -f /app/server.js',
      interval_seconds: 1
    })
    t.match(await web.deployed(), { status: 'success', health_status: 'passing' })
    await admin.put(`${web.path}/health-check`, { type: 'none' })
  })

  await t.test('a build that fails says why, and an unknown branch too', async t => {
    await web.push(sample('bad', 'ok', 'FROM node:20\nRUN echo the compiler says no && exit 7\n'))
    const ended = await web.deployed()
    t.match(ended, {
      status: 'failed',
      step: 'prepare-image',
      error_message: /exit code 7/,
      image_tag: null,
      commit_message: 'a change',
      build_ended_at: String,
      deploy_started_at: null
    })
    t.match(ended.build_logs, /the compiler says no/)
    t.match((await admin.get(`${web.path}/health`)).body, {
      deployment_id: ended.id,
      deploy_status: 'failed',
      status: 'skipped',
      message: /failed before its health could be checked/,
      checked_at: null
    })
    await admin.put(web.path, { branch: 'nowhere' })
    t.match(await web.deployed(), { status: 'failed', error_message: /nowhere/ })
    await admin.put(web.path, { branch: 'main' })
  })

  await t.test('a secret does not show in the record of a failure', async t => {
    t.equal(
      (
        await admin.put(`${web.path}/env`, {
          vars: [{ key: 'PASSWORD', value: 'very-s3cret-value', is_secret: true }]
        })
      ).status,
      200
    )
    await web.push(sample('bad', 'exit'))
    const ended = await web.deployed()
    t.match(ended, { status: 'failed', evidence: /cannot reach the database with \[REDACTED\]/ })
    t.notMatch(JSON.stringify(ended), /very-s3cret-value/)
    await admin.put(`${web.path}/env`, { vars: [] })
  })

  await t.test('an application that never ran ends in error, and its address is null', async t => {
    const other = await lab.application('other', sample('bad', 'exit'))
    t.match(await other.deployed(), { status: 'failed' })
    t.match(await other.read(), { status: 'error', direct_url: null })
    t.same(await other.containers(), [])
    await other.push(sample('better'))
    t.match(await other.deployed(), { status: 'success' })
    t.match(await other.read(), { status: 'running', direct_url: String })
  })

  await t.test('an old version that ignores SIGTERM does not hold up the next deploy', async t => {
    const ignoring = await lab.application('ignores-sigterm', sample('ignores-sigterm', 'ignores-sigterm'))
    await ignoring.deployed()
    await ignoring.push(sample('two'))
    t.match(await ignoring.deployed(), { status: 'success' })
    await ignoring.push(sample('three'))
    const begunAt = Date.now()
    t.match(await ignoring.deployed(), { status: 'success' })
    t.ok(Date.now() - begunAt < 20_000)
    t.equal(await (await fetch((await ignoring.read()).direct_url)).text(), 'three')
    for (const { Id } of await ignoring.containers())
      await engine
        .getContainer(Id)
        .kill()
        .catch(() => {})
    await until(async () => (await ignoring.containers()).length <= 1, 'only one container is left')
  })
})
