import { test } from 'tap'
import { sample } from './deploy-lab.js'
import { type FailingVersion, startServed } from './failing-lab.js'

const versions: readonly FailingVersion[] = [
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

test('health checks decide whether a version serves', async t => {
  const served = await startServed(t)
  if (served === undefined) return
  const { lab, web, isRefused } = served
  const admin = await lab.k.as.session()
  for (const version of versions) await isRefused(version)

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
})
