import { test } from 'tap'
import { sample } from './deploy-lab.js'
import { type FailingVersion, startServed } from './failing-lab.js'

const versions: readonly FailingVersion[] = [
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
  }
]

test('deploys that fail', async t => {
  const served = await startServed(t)
  if (served === undefined) return
  const { lab, web, isRefused } = served
  const admin = await lab.k.as.session()
  for (const version of versions) await isRefused(version)

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
    await admin.put(`${web.path}/health-check`, { type: 'none' })
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
})
