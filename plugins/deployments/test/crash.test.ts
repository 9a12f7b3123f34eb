import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { createInterface } from 'node:readline'
import { fileURLToPath } from 'node:url'
import { TestClient } from 'busbar/sdk/testing'
import { test } from 'tap'
import { requireEngine } from '../../../test/lab/engine.js'
import type { RolloutBoundary } from '../api.js'
import { openLab, sample, until, type DeployLab, type LabApplication } from './deploy-lab.js'

/** What must be true after the next start, by where the platform was killed. */
const cases: ReadonlyArray<{ boundary: RolloutBoundary, outcome: 'failed' | 'success' }> = [
  { boundary: 'after load', outcome: 'success' },
  { boundary: 'after prepare-image', outcome: 'failed' },
  { boundary: 'after create', outcome: 'failed' },
  { boundary: 'after start', outcome: 'failed' },
  { boundary: 'after prove-healthy', outcome: 'failed' },
  { boundary: 'after switch', outcome: 'success' },
  { boundary: 'after record', outcome: 'success' },
  { boundary: 'after drain', outcome: 'success' }
]

test('kill -9 of the platform during a deploy', async t => {
  if (!await requireEngine(t)) return
  const lab = await openLab()
  t.teardown(() => lab.close())
  const web = await lab.application('web', sample('v0'))
  t.equal((await web.deployed()).status, 'success')
  const { direct_url: address } = await web.read()
  let serving = 'v0'

  for (const { boundary, outcome } of cases) {
    await t.test(`${boundary}: the deploy ends ${outcome} at the next start, and one container serves`, async t => {
      const next = `killed ${boundary}`
      await web.push(sample(next))
      await lab.k.stop()
      const deploymentId = await killAt(lab, web, boundary)
      const restartedAt = Date.now()
      await lab.restart()
      const isNew = boundary === 'after switch' || boundary === 'after record' || boundary === 'after drain'
      const first = await fetch(address)
      t.equal(await first.text(), isNew ? next : serving, `requests are forwarded ${Date.now() - restartedAt} ms after the restart began`)

      const ended = await web.ended(deploymentId)
      t.match(ended, { status: outcome, finished_at: String })
      if (outcome === 'failed') t.match(ended.error_message, /the platform stopped while this deployment was at the step/)
      if (outcome === 'success') serving = next
      await until(async () => (await web.containers()).length === 1, 'one container is left', 60_000)
      t.match(await web.containers(), [{ Names: [`/${web.slug}`], State: 'running' }])
      t.equal(await (await fetch(address)).text(), serving)
      t.match(await web.read(), { status: 'running', direct_url: address })
    })
  }

  await t.test('the application can be deployed again after all that', async t => {
    await web.push(sample('at last'))
    t.match(await web.deployed(), { status: 'success' })
    t.equal(await (await fetch(address)).text(), 'at last')
  })
})

/** Runs the platform in a process of its own, deploys, and kills it at `boundary`; the deployment's id. */
async function killAt (lab: DeployLab, web: LabApplication, boundary: RolloutBoundary): Promise<string> {
  const { database, directory } = lab.k.state
  const argument = JSON.stringify({ url: database.url, directory, boundary })
  const child = spawn(process.execPath, ['--import=tsx', '--conditions=busbar-source', fileURLToPath(new URL('crash-child.ts', import.meta.url)), argument], { stdio: ['ignore', 'pipe', 'inherit'] })
  const exited = once(child, 'exit')
  let deploymentId: string | undefined
  for await (const line of createInterface({ input: child.stdout })) {
    const message: { url?: string, reached?: string } = JSON.parse(line)
    if (message.url !== undefined) {
      const admin = await lab.k.as.session()
      const answer = await new TestClient(message.url, admin.credential, admin.userId).post(`${web.path}/deploy`)
      deploymentId = answer.body.id
    }
    if (message.reached === boundary) break
  }
  child.kill('SIGKILL')
  await exited
  if (deploymentId === undefined) throw new Error('the platform ended before it was asked to deploy')
  return deploymentId
}
