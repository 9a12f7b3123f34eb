/**
 * `npm run demo`: the main job, shown with real parts. A repository is served over Git's HTTP protocol,
 * deployed through the public API while its build log comes over the WebSocket, changed under load, and
 * broken. Every sentence with a tick was checked; the demo ends with 1 when one does not hold.
 *
 * BUSBAR_URL names a platform that runs already (with BUSBAR_EMAIL and BUSBAR_PASSWORD of an account of
 * it, or with BUSBAR_SETUP_CODE, when it is new and asks for the code of its log); otherwise a fresh one is started and removed again.
 */
import { randomBytes } from 'node:crypto'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { type Answer, type BusbarClient, createClient } from 'busbar/client'
import Docker from 'dockerode'
import { type GitServer, startGitServer } from '../lab/git-server.js'
import { type ApplicationIds, applicationPath, deploy, durationMs, recordedLines } from './demo/deploy.js'
import { openPlatform, type Platform } from './demo/platform.js'
import { readSample } from './demo/sample-app.js'
import { Story, seconds } from './demo/story.js'
import { startTraffic, versionAt } from './demo/traffic.js'

type Project = Answer<'POST /api/projects'>
interface People {
  readonly session: BusbarClient
  readonly token: BusbarClient
}

const sample = 'hello-node'
const account = {
  email: process.env.BUSBAR_EMAIL ?? 'demo@example.com',
  password: process.env.BUSBAR_PASSWORD ?? randomBytes(12).toString('base64url')
}
const story = new Story()
/** What the builder says of its layers between two steps would only hide what happens. */
const isNoise = (line: string): boolean =>
  /^ *--->|^Removing intermediate container|^Step \d+\/\d+ : LABEL /.test(line)
const quote = (line: string): void => {
  if (!isNoise(line)) story.quote(line)
}

async function main(): Promise<void> {
  console.log('Busbar: from a Git repository to an application that answers')
  const platform = await start()
  const undo: Array<() => Promise<void>> = [platform.close]
  const cleanUp = async (): Promise<void> => {
    for (const step of undo.splice(0).reverse()) await step()
  }
  process.once('SIGINT', () => {
    void cleanUp().finally(() => process.exit(130))
  })
  try {
    const { session, token } = await introduce(platform)
    const git = await startGitServer({ root: join(platform.directory, 'git') })
    undo.push(git.close)
    const repository = await publish(git)
    const project = await token.post('/api/projects', {
      body: { name: 'Demo', slug: `demo-${randomBytes(3).toString('hex')}` }
    })
    undo.push(async () => {
      await session.delete('/api/projects/{projectId}', { params: { projectId: project.id } }).catch(() => {})
    })
    const application = await create(token, project, repository)

    const url = await firstDeploy(token, application)
    await deployUnderLoad(token, application, git, url)
    await deployBroken(token, application, git, url)
    await remove(session, project)
  } finally {
    await cleanUp()
  }
  story.end()
}

async function start(): Promise<Platform> {
  story.chapter('A platform')
  const startedAt = performance.now()
  const platform = await openPlatform()
  try {
    story.time('platform start, with its own PostgreSQL', performance.now() - startedAt)
    const { checks } = await createClient({ url: platform.url }).get('/healthz')
    story.claim(true, `serves ${platform.url}`)
    story.claim(
      checks.docker?.startsWith('ok') === true,
      `has a Docker Engine: ${checks.docker ?? 'no answer'}`
    )
    return platform
  } catch (error) {
    await platform.close()
    throw error
  }
}

async function introduce({ url }: Platform): Promise<People> {
  story.chapter('People')
  const anonymous = createClient({ url })
  const { setup_required: isNew } = await anonymous.get('/api/auth/setup')
  const code = process.env.BUSBAR_SETUP_CODE
  if (isNew)
    await anonymous.post('/api/auth/setup', { body: { ...account, ...(code === undefined ? {} : { code }) } })
  else if (process.env.BUSBAR_PASSWORD === undefined)
    throw new Error(`${url} has its admin already: give BUSBAR_EMAIL and BUSBAR_PASSWORD`)
  const session = await anonymous.signIn(account)
  const me = await session.get('/api/auth/me')
  story.claim(me.email === account.email, `${me.email} signed in, as ${me.role}`)
  const { token } = await session.post('/api/tokens', {
    body: { name: 'demo', scopes: ['write'], expires_in_days: 1 }
  })
  story.claim(
    token.startsWith('busbar_pat_'),
    `a token of scope write: ${token.slice(0, 15)}…, which does the rest`
  )
  return { session, token: anonymous.withToken(token) }
}

async function publish(git: GitServer): Promise<string> {
  story.chapter('A repository')
  const { url, sha } = await git.createRepository(sample, await readSample(sample))
  story.claim(sha.length === 40, `examples/apps/${sample} is served as ${url}, commit ${sha.slice(0, 8)}`)
  return url
}

async function create(token: BusbarClient, project: Project, repository: string): Promise<ApplicationIds> {
  const {
    id,
    status,
    direct_url: url
  } = await token.post('/api/projects/{projectId}/applications', {
    params: { projectId: project.id },
    body: {
      name: 'Hello',
      type: 'git',
      build_type: 'dockerfile',
      source_repo: repository,
      branch: 'main',
      health_check_path: '/healthz'
    }
  })
  story.claim(
    status === 'inactive' && url === null,
    `project ${project.slug} has an application, inactive and without an address`
  )
  return { projectId: project.id, applicationId: id }
}

async function firstDeploy(token: BusbarClient, application: ApplicationIds): Promise<string> {
  story.chapter('The first deploy, and its build as the WebSocket tells it')
  const { deployment, liveLines } = await deploy(token, application, quote)
  story.claim(
    deployment.status === 'success',
    `${deployment.status}${deployment.error_message === null ? '' : `: ${deployment.error_message}`} after ${seconds(durationMs(deployment))}`
  )
  story.claim(
    liveLines > 0,
    `${liveLines} lines came live; the record keeps ${recordedLines(deployment).length}`
  )
  story.claim(
    deployment.health_status === 'passing',
    'the health check passed before any request was sent there'
  )
  story.time('first deploy', durationMs(deployment))
  const { direct_url: url } = await token.get(applicationPath, { params: application })
  if (url === null) throw new Error('the application has no direct_url')
  story.claim((await versionAt(url)) === '1', `GET ${url} answers: version 1`)
  return url
}

async function deployUnderLoad(
  token: BusbarClient,
  application: ApplicationIds,
  git: GitServer,
  url: string
): Promise<void> {
  story.chapter('A change, deployed while visitors keep asking')
  const { 'server.js': server = '' } = await readSample(sample)
  const sha = await git.commit(
    sample,
    { 'server.js': server.replace("version = '1'", "version = '2'") },
    'Say version 2'
  )
  const traffic = startTraffic(url)
  const { deployment } = await deploy(token, application, quote)
  await sleep(500)
  const { requests, failures, versions } = await traffic.stop()
  story.claim(
    deployment.status === 'success' && deployment.commit_sha === sha,
    `commit ${sha.slice(0, 8)}: ${deployment.status} after ${seconds(durationMs(deployment))}`
  )
  story.claim(
    failures.length === 0,
    `${requests} requests meanwhile, ${failures.length} failed${failures.length > 0 ? `, the first: ${failures[0] ?? ''}` : ''}`
  )
  story.claim(
    [...versions.keys()].join() === '1,2',
    `version 1 answered ${versions.get('1') ?? 0} of them, then version 2 answered ${versions.get('2') ?? 0}`
  )
  story.time('deploy of a change', durationMs(deployment))
}

async function deployBroken(
  token: BusbarClient,
  application: ApplicationIds,
  git: GitServer,
  url: string
): Promise<void> {
  story.chapter('A version that crashes as it starts')
  await git.commit(sample, { 'server.js': "import './not-there.js'\n" }, 'Import a file that is not there')
  const traffic = startTraffic(url)
  const { deployment } = await deploy(token, application, quote)
  const { requests, failures, versions } = await traffic.stop()
  story.claim(
    deployment.status === 'failed',
    `the deployment ${deployment.status} after ${seconds(durationMs(deployment))}, and says why:`
  )
  for (const line of (deployment.error_message ?? '').split('\n')) story.quote(line)
  const evidence = recordedLines(deployment).filter(line => line.includes('not-there.js'))
  for (const line of evidence) story.quote(line)
  story.claim(evidence.length > 0, 'the record keeps the container’s last words')
  story.claim(
    failures.length === 0 && [...versions.keys()].join() === '2',
    `version 2 answered all ${requests} requests meanwhile`
  )
  const { status } = await token.get(applicationPath, { params: application })
  story.claim(
    status === 'running' && (await versionAt(url)) === '2',
    `the application is ${status}, and still answers: version 2`
  )
  story.time('deploy that fails', durationMs(deployment))
}

async function remove(session: BusbarClient, project: Project): Promise<void> {
  story.chapter('Gone again')
  const startedAt = performance.now()
  const applications = await session.get('/api/projects/{projectId}/applications', {
    params: { projectId: project.id }
  })
  await session.delete('/api/projects/{projectId}', { params: { projectId: project.id } })
  story.claim(
    !(await session.get('/api/projects')).some(({ id }) => id === project.id),
    'the project is deleted, by its owner’s session: no token may'
  )
  const left = await leftOnEngine(
    applications.map(({ id }) => id),
    project.slug
  )
  story.claim(
    left.length === 0,
    `no container and no network is left on the engine${left.length > 0 ? ` but ${left.join(', ')}` : ''}`
  )
  story.time('removal', performance.now() - startedAt)
}

/** What still exists after at most a minute: containers end first, and may take their time. */
async function leftOnEngine(applicationIds: readonly string[], slug: string): Promise<string[]> {
  const engine = new Docker()
  const until = performance.now() + 60_000
  for (;;) {
    const containers = await engine.listContainers({ all: true })
    const networks = await engine.listNetworks()
    const left = [
      ...containers
        .filter(({ Labels }) => applicationIds.includes(Labels['application-id'] ?? ''))
        .flatMap(({ Names }) => Names),
      ...networks.map(({ Name }) => Name).filter(name => name === `busbar-${slug}`)
    ]
    if (left.length === 0 || performance.now() > until) return left
    await sleep(200)
  }
}

main().catch((error: unknown) => {
  story.fail(error)
  process.exitCode = 1
})
