import { mkdtemp, readFile, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createTestKernel, type TestKernel, type TestKernelOptions, until } from 'busbar/sdk/testing'
import Docker from 'dockerode'
import { removeFromEngine } from '../../../lab/engine-cleanup.js'
import {
  type GitFiles,
  type GitServer,
  type GitServerOptions,
  startGitServer
} from '../../../lab/git-server.js'

export const engine = new Docker()

/** With a first build in a build engine, on a machine that has other things to do. */
const endsWithinMs = 180_000

/** What a sample application does instead of serving well. */
export type Mode = 'ok' | 'exit' | 'silent' | 'unhealthy' | 'slow' | 'loud' | 'other-port' | 'ignores-sigterm'

const server = `
const { createServer } = require('node:http')
const { version, mode } = require('./what.json')
if (mode === 'exit') { console.error('cannot reach the database with ' + process.env.PASSWORD); process.exit(3) }
if (mode === 'loud') { for (let i = 0; i < 20000; i++) console.log('noise ' + i) }
if (mode !== 'ignores-sigterm') process.on('SIGTERM', () => process.exit(0)); else process.on('SIGTERM', () => {})
let isBroken = mode === 'unhealthy'
const server = createServer((request, response) => {
  if (request.url === '/break' || request.url === '/mend') isBroken = request.url === '/break'
  if (request.url === '/health' && isBroken) { response.writeHead(500); return response.end('no database') }
  if (request.url === '/moved') { response.writeHead(302, { location: 'http://' + request.headers.host + '/found' }); return response.end() }
  if (request.url === '/round') { response.writeHead(302, { location: '/round' }); return response.end() }
  if (request.url === '/away') { response.writeHead(301, { location: 'https://example.com/' }); return response.end() }
  if (request.url === '/env') return response.end(JSON.stringify(process.env))
  if (request.url === '/slow') { response.write(version); return setTimeout(() => response.end(' to its end'), 1500) }
  if (request.url === '/wait') return setTimeout(() => response.end(version), 1500)
  response.end(version)
})
if (mode === 'silent') setInterval(() => {}, 1000)
else setTimeout(() => server.listen(mode === 'other-port' ? 3000 : 8080, '0.0.0.0', () => console.log('listening, version ' + version)), mode === 'slow' ? 2500 : 0)
`

/** A repository whose application answers `version` on 8080. */
export const sample = (
  version: string,
  mode: Mode = 'ok',
  dockerfile = 'FROM node:20\nWORKDIR /app\nCOPY . .\nCMD ["node", "server.js"]\n'
): GitFiles => ({
  Dockerfile: dockerfile,
  'server.js': server,
  'what.json': JSON.stringify({ version, mode })
})

/** A platform with a project, a Git server beside it, and everything removed at the end. */
export interface DeployLab {
  readonly k: TestKernel
  readonly git: GitServer
  readonly projectId: string
  /** An application made from a repository of its own. */
  application(name: string, files: GitFiles, fields?: object): Promise<LabApplication>
  /** The same in a project of its own, of the same name. */
  otherProject(name: string, files: GitFiles, fields?: object): Promise<LabApplication>
  /** In a project of its own that belongs to this user. */
  ofUser(user: string, name: string, files: GitFiles): Promise<LabApplication>
  /** The platform again, on the same database and folder. */
  restart(): Promise<void>
  close(): Promise<void>
}

export interface LabApplication {
  readonly id: string
  readonly slug: string
  readonly repository: string
  /** `/api/projects/…/applications/…` */
  readonly path: string
  push(files: GitFiles, message?: string): Promise<string>
  deploy(): Promise<any>
  /** The deployment once it has ended. */
  ended(deploymentId: string, timeoutMs?: number): Promise<any>
  deployed(): Promise<any>
  read(): Promise<any>
  containers(): Promise<Docker.ContainerInfo[]>
}

interface LabOptions extends TestKernelOptions {
  /** Sees each request to the Git server first; true says that it has answered. */
  readonly intercept?: GitServerOptions['intercept']
  /** Another engine than the machine's own; the platform is told of it by `environment`. */
  readonly docker?: Docker
}

export async function openLab({
  intercept,
  docker = engine,
  ...options
}: LabOptions = {}): Promise<DeployLab> {
  const root = await mkdtemp(join(tmpdir(), 'busbar-deploy-git-'))
  const git = await startGitServer({ root, intercept })
  let k = await createTestKernel(options)
  const admin = await k.as.session()
  const project = await admin.post('/api/projects', {
    name: 'Lab',
    slug: `lab-${Math.random().toString(36).slice(2, 8)}`
  })
  if (project.status !== 201) throw new Error(`no project: ${JSON.stringify(project.body)}`)
  const projectId: string = project.body.id
  const make = async (
    inProject: string,
    name: string,
    files: GitFiles,
    fields: object
  ): Promise<LabApplication> => {
    const { url } = await git.createRepository(name, files)
    const answer = await (await k.as.session()).post(`/api/projects/${inProject}/applications`, {
      name,
      type: 'git',
      build_type: 'dockerfile',
      source_repo: url,
      branch: 'main',
      container_port: 8080,
      ...fields
    })
    if (answer.status !== 201)
      throw new Error(`no application: ${answer.status} ${JSON.stringify(answer.body)}`)
    return labApplication(() => k, git, docker, name, answer.body)
  }
  const makeAlone = async (
    user: string,
    name: string,
    files: GitFiles,
    fields: object
  ): Promise<LabApplication> => {
    const slug = `lab-${Math.random().toString(36).slice(2, 8)}`
    const { body } = await (await k.as.session(user)).post('/api/projects', { name, slug })
    return await make(body.id, name, files, fields)
  }
  return {
    get k() {
      return k
    },
    git,
    projectId,
    application: async (name, files, fields = {}) => await make(projectId, name, files, fields),
    otherProject: async (name, files, fields = {}) => await makeAlone('admin', name, files, fields),
    ofUser: async (user, name, files) => await makeAlone(user, name, files, {}),
    async restart() {
      await k.stop()
      k = await createTestKernel({ ...options, state: k.state })
    },
    async close() {
      const instanceId = await readFile(join(k.state.directory, 'data/runtime-docker/instance-id'), 'utf8')
      const fetched = await k
        .query<{ handle: string }>(
          'select handle from builds.fetched_image union select handle from builds.image_to_remove'
        )
        .catch(() => [])
      // A platform that runs would put up again what is taken away.
      await k.stop()
      await removeFromEngine(instanceId.trim(), docker)
      await k.close()
      for (const { handle } of fetched)
        await docker
          .getImage(handle)
          .remove({ force: true })
          .catch(() => undefined)
      await git.close()
      await rm(root, { recursive: true, force: true })
    }
  }
}

/** Whether the engine has the image, by its name or id. */
export const hasImage = async (name: string): Promise<boolean> =>
  await engine
    .getImage(name)
    .inspect()
    .then(
      () => true,
      () => false
    )

function labApplication(
  platform: () => TestKernel,
  git: GitServer,
  docker: Docker,
  repository: string,
  made: { id: string; project_id: string; slug: string }
): LabApplication {
  const path = `/api/projects/${made.project_id}/applications/${made.id}`
  const admin = async () => {
    // Many deploys that are asked for at once ask more often than a person may.
    platform().resetRateLimits()
    return await platform().as.session()
  }
  const lab: LabApplication = {
    id: made.id,
    slug: made.slug,
    repository,
    path,
    push: async (files, message = 'a change') => await git.commit(repository, files, message),
    async deploy() {
      const answer = await (await admin()).post(`${path}/deploy`)
      if (answer.status !== 202) throw new Error(`no deploy: ${answer.status} ${JSON.stringify(answer.body)}`)
      return answer.body
    },
    async ended(deploymentId, timeoutMs = endsWithinMs) {
      const read = async (): Promise<any> =>
        (await (await admin()).get(`${path}/deployments/${deploymentId}`)).body
      const isOver = (status: unknown): boolean => status === 'success' || status === 'failed'
      // Tests wait for deployments most of their time: who asks the platform each time keeps it busy.
      const hasEnded = async (): Promise<boolean> => {
        const [row] = await platform()
          .query<{ status: string }>('select status from deployments.deployment where id = $1', [
            deploymentId
          ])
          .catch(() => [])
        return isOver(row?.status) && isOver((await read()).status)
      }
      await until(hasEnded, 'the deployment has ended', timeoutMs).catch(async (error: unknown) => {
        const seen = await read()
        throw new Error(`still ${seen?.status} at ${seen?.step}: ${seen?.build_logs}`, { cause: error })
      })
      return await read()
    },
    deployed: async () => await lab.ended((await lab.deploy()).id),
    read: async () => (await (await admin()).get(path)).body,
    containers: async () => await containersOf(made.id, docker)
  }
  return lab
}

export const containersOf = async (applicationId: string, docker = engine): Promise<Docker.ContainerInfo[]> =>
  await docker.listContainers({ all: true, filters: { label: [`application-id=${applicationId}`] } })
