/** One of two processes loses the database for a while, in which the other one changes what is listened to. */
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'tap'
import { type CutLine, openCutLine } from '../../lab/cut-line.js'
import { requireEngine } from '../../lab/engine.js'
import { startGitServer } from '../../lab/git-server.js'
import { startInstallation } from './installation.js'
import { expect, Stage, unique } from './stage.js'

/** As it stands in `events.md`. */
export const claimed =
  'Whoever listens at a process that was cut off from the others is told the status as it is, and the end of a build, of a failed one too, once it is back.'

const good = 'FROM busybox:lab\nCMD ["sh", "-c", "trap \'exit 0\' TERM; while true; do sleep 0.2; done"]\n'
const bad = 'FROM busybox:lab\nRUN echo it begins; sleep 3; false\n'

test(claimed, async t => {
  if (!(await requireEngine(t))) return
  let line: CutLine | undefined
  const installation = await startInstallation({
    processes: 2,
    usesEngine: true,
    wayOf: async (process, url) => {
      if (process === 0) return url
      line = await openCutLine(url)
      return line.url
    }
  })
  const root = await mkdtemp(join(tmpdir(), 'busbar-conformance-git-'))
  const git = await startGitServer({ root })
  t.teardown(async () => {
    await installation.close()
    await line?.close()
    await git.close()
    await rm(root, { recursive: true, force: true })
  })
  const set = await Stage.set(installation)
  const stage = set.at({ name: 'listening beside the process that acts', acting: 0, listening: [1] })
  t.teardown(async () => {
    await stage.clear()
  })
  const { owner } = stage.cast
  const act = async (method: string, path: string, status: number, body?: object): Promise<any> =>
    expect(await stage.act(owner.session, method, path, body), status).body
  const deploymentIs = async (path: string, status: string): Promise<void> => {
    await stage.waits(
      async () => (await act('GET', path, 200)).status === status,
      `the deployment is ${status}`
    )
  }

  const { url } = await git.createRepository('cut', { Dockerfile: good })
  const application = await act('POST', `/api/projects/${stage.of.projectId}/applications`, 201, {
    name: unique('cut'),
    type: 'git',
    build_type: 'dockerfile',
    source_repo: url,
    branch: 'main',
    health_check_type: 'none'
  })
  const path = `/api/projects/${stage.of.projectId}/applications/${application.id}`
  const first = await act('POST', `${path}/deploy`, 202)
  await deploymentIs(`${path}/deployments/${first.id}`, 'success')

  const status = `container-status:${application.id}`
  const client = await stage.connect(owner.session)
  client.subscribe(status)
  await git.commit('cut', { Dockerfile: bad }, 'a build that fails')
  const second = await act('POST', `${path}/deploy`, 202)
  const logs = `build-logs:${second.id}`
  client.subscribe(logs)
  await client.next(({ channel }) => channel === logs, 'a line of the build')

  line?.cut()
  await deploymentIs(`${path}/deployments/${second.id}`, 'failed')
  await act('POST', `${path}/stop`, 200)
  await stage.waits(async () => (await act('GET', path, 200)).status === 'stopped', 'it has stopped')
  t.same(client.on(status), [], 'nothing of it is heard')
  t.same(
    client.on(logs).filter(({ event }) => event === 'done'),
    []
  )
  line?.mend()
  const told = await client.next(({ channel }) => channel === status, 'the status', 60_000)
  t.same(told.data, { application_id: application.id, status: 'stopped' })
  await client.next(({ channel, event }) => channel === logs && event === 'done', 'the end of the build')
  t.equal(client.end, undefined, 'the socket is the same')

  const third = await act('POST', `${path}/deploy`, 202)
  const after = `build-logs:${third.id}`
  client.subscribe(after)
  await client.next(
    ({ channel, event }) => channel === after && event === 'done',
    'the end of one that fails',
    60_000
  )
  await deploymentIs(`${path}/deployments/${third.id}`, 'failed')
})
