import { randomUUID } from 'node:crypto'
import { readdir } from 'node:fs/promises'
import { join } from 'node:path'
import type { Clock, Contributions } from 'busbar/sdk'
import tap, { type Test } from 'tap'
import { type Lab, sharedLab } from '../../runtime-docker/test/lab.js'
import type { Builder, Commit, ImageRequest } from '../api.js'
import { DockerfileBuilder } from '../builders/dockerfile-builder.js'
import type { CacheClearings } from '../cache/cache-clearings.js'
import { Workspaces } from '../context/workspace.js'
import type { GitLimits } from '../git/git-command.js'
import { GitSource } from '../git/git-source.js'
import { SourceToImage } from '../image-preparation.js'
import { imageParts, withoutBuildEngines } from './fetched-lab.js'
import { clock, folder, log, processes, recorder } from './kit.js'
import { policyOf } from './policy-of.js'

interface Setup {
  readonly builders?: Readonly<Record<string, Builder>>
  readonly clock?: Clock
  readonly clearings?: CacheClearings
  readonly limits?: Partial<GitLimits>
}

const neverCleared: CacheClearings = {
  find: async () => undefined,
  mark: async () => {},
  settle: async () => {}
}

export const imageToken = '0123456789abcdef0123'

const contributions = (values: Readonly<Record<string, Builder>>): Contributions<Builder> => ({
  get: key => values[key],
  keys: () => Object.keys(values),
  entries: () => Object.entries(values).map(([key, value]) => ({ key, plugin: 'test', value }))
})

let newProject: (() => Lab) | undefined

/** A project of its own, in the one installation of the file. */
function projectOfFile(): Lab {
  if (newProject === undefined) {
    newProject = sharedLab()
    tap.teardown(() => {
      newProject = undefined
    })
  }
  return newProject()
}

/** From sources to images on the real engine, beside a Git server of the test's own. */
export async function setUp(t: Test, changes: Setup = {}) {
  const lab = projectOfFile()
  const directory = await folder(t)
  const workspaces = new Workspaces({ directory: async () => directory }, log)
  const git = new GitSource({
    exec: processes(t),
    clock,
    hostPolicy: policyOf('allow'),
    lookup: async () => [{ address: '127.0.0.1', family: 4 }],
    limits: { checkoutBytes: 2 ** 30, fetchMs: 60_000, silenceSeconds: 60, ...changes.limits }
  })
  const images = imageParts(t, lab.runtime)
  const preparation = new SourceToImage({
    ...images,
    runtime: lab.runtime,
    builders: contributions(
      changes.builders ?? {
        dockerfile: new DockerfileBuilder({
          ...images,
          ...withoutBuildEngines,
          runtime: lab.runtime,
          usualLimits: { memoryBytes: 512 * 2 ** 20, cpus: 1 },
          fetching: {
            hosts: { hostPolicy: policyOf('deny'), lookup: async () => [] },
            maxBytes: 2 ** 20
          },
          archives: { exec: processes(t), limit: async () => 2 ** 30 }
        })
      }
    ),
    git,
    workspaces,
    clock: changes.clock ?? clock,
    clearings: changes.clearings ?? neverCleared,
    latest: { find: async () => undefined, save: async () => {} },
    names: { tokenOf: async () => imageToken },
    deployKeys: {
      find: async () => undefined,
      knownHosts: () => ({ find: async () => undefined, add: async () => {} })
    },
    buildMinutes: 30,
    pullMinutes: 10
  })
  const applicationId = randomUUID()
  const commits: Commit[] = []
  return {
    lab,
    preparation,
    applicationId,
    commits,
    /** What stays of workspaces. */
    leftovers: async () => {
      await workspaces.settled()
      return await readdir(join(directory, 'work')).catch(() => [])
    },
    prepare: async (source: ImageRequest['source'], more: Partial<ImageRequest> = {}, context = recorder()) =>
      await preparation.prepare(
        {
          applicationId,
          deploymentId: randomUUID(),
          projectId: lab.projectId,
          slug: `lab-web-${applicationId.slice(0, 8)}`,
          source,
          buildType: source.type === 'image' ? 'image' : 'dockerfile',
          builderImage: null,
          customBuildpacks: [],
          variables: [],
          ...more
        },
        {
          ...context,
          onCommit: async commit => {
            commits.push(commit)
          }
        }
      )
  }
}

export const gitSource = (
  repo: string,
  changes: Partial<Extract<ImageRequest['source'], { type: 'git' }>> = {}
): ImageRequest['source'] => ({
  type: 'git',
  repo,
  branch: null,
  token: null,
  rootDirectory: '',
  dockerfilePath: 'Dockerfile',
  ...changes
})
