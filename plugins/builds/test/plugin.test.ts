import { randomUUID } from 'node:crypto'
import { readdir } from 'node:fs/promises'
import { join } from 'node:path'
import { builders, type Commit, imagePreparation } from 'busbar/api/builds'
import { definePlugin, kernel as kernelServices } from 'busbar/sdk'
import { createTestKernel, until } from 'busbar/sdk/testing'
import Docker from 'dockerode'
import { engineTest } from '../../runtime-docker/test/lab.js'
import { gitServer, recorder } from './kit.js'

const sources = (repo: string) => ({
  type: 'git' as const,
  repo,
  branch: null,
  token: null,
  rootDirectory: '',
  dockerfilePath: ''
})

engineTest(
  'in the running platform a repository becomes an image, and a plugin can add a builder',
  async t => {
    const built: string[] = []
    const addition = definePlugin({
      id: 'addition',
      needs: { clock: kernelServices.clock },
      start: () => ({}),
      contributes(contribute) {
        contribute(builders, 'custom', {
          async build({ tag }) {
            built.push(tag)
            return { id: 'sha256:x', repoDigests: [], exposedPorts: [], sizeBytes: 0 }
          }
        })
      }
    })
    const k = await createTestKernel({
      inline: [
        {
          manifest: { id: 'addition', requires: { builds: '^0.1.0' }, grants: ['clock'] },
          definition: addition
        }
      ]
    })
    const admin = await k.as.session()
    const projectId = (await admin.post('/api/projects', { name: 'x', slug: 'x' })).body.id as string
    const applicationId = (
      await admin.post(`/api/projects/${projectId}/applications`, {
        name: 'web',
        type: 'git',
        build_type: 'dockerfile',
        source_repo: 'https://git.example.com/a.git'
      })
    ).body.id as string
    t.teardown(async () => {
      const docker = new Docker()
      for (const { Id } of await docker.listImages({
        filters: { label: [`application-id=${applicationId}`] }
      }))
        await docker.getImage(Id).remove({ force: true })
      await k.close()
    })
    const server = await gitServer(t)
    const { url, sha } = await server.createRepository('app', {
      Dockerfile: 'FROM busybox:lab\nEXPOSE 4000\n'
    })
    const commits: Commit[] = []
    const request = {
      applicationId,
      deploymentId: randomUUID(),
      projectId,
      slug: `lab-plugin-${applicationId.slice(0, 8)}`,
      source: sources(url),
      buildType: 'dockerfile',
      builderImage: null,
      customBuildpacks: [],
      variables: []
    }
    const context = {
      ...recorder(),
      onCommit: async (commit: Commit) => {
        commits.push(commit)
      }
    }
    const preparation = k.service(imagePreparation)
    const { image } = await preparation.prepare(request, context)
    t.same(image.exposedPorts, [4000])
    t.equal(commits[0]?.sha, sha)
    await until(
      async () => (await readdir(join(k.state.directory, 'data/builds/work'))).length === 0,
      'no workspace is left'
    )

    await preparation.prepare({ ...request, buildType: 'custom' }, context)
    t.match(built, [new RegExp(`^${request.slug}-[0-9a-f]{20}:${request.deploymentId.slice(0, 8)}$`)])
    await t.rejects(preparation.prepare({ ...request, buildType: 'other' }, context), {
      status: 409,
      message: /other: available are buildpacks, custom, dockerfile, nixpacks, railpack, static/
    })
  }
)

engineTest('a platform that others can reach does not clone from private hosts', async t => {
  const k = await createTestKernel({ environment: { GIT_PRIVATE_HOSTS: 'deny' } })
  t.teardown(async () => await k.close())
  const server = await gitServer(t)
  const { url } = await server.createRepository('app', { Dockerfile: 'FROM busybox:lab\n' })
  await t.rejects(
    k.service(imagePreparation).prepare(
      {
        applicationId: randomUUID(),
        deploymentId: randomUUID(),
        projectId: randomUUID(),
        slug: 'x',
        source: sources(url),
        buildType: 'dockerfile',
        builderImage: null,
        customBuildpacks: [],
        variables: []
      },
      { ...recorder(), onCommit: async () => {} }
    ),
    { code: 'E_SOURCE_HOST_PRIVATE' }
  )
})

engineTest('the size of a cache is asked for thirty times a minute, and then refused', async t => {
  const k = await createTestKernel()
  t.teardown(async () => await k.close())
  const admin = await k.as.session()
  const project = (await admin.post('/api/projects', { name: 'x', slug: 'x' })).body.id as string
  const { id } = (
    await admin.post(`/api/projects/${project}/applications`, {
      name: 'web',
      type: 'git',
      build_type: 'dockerfile',
      source_repo: 'https://git.example.com/a.git'
    })
  ).body as { id: string }
  const answers = await Promise.all(
    Array.from(
      { length: 31 },
      async () => (await admin.get(`/api/projects/${project}/applications/${id}/cache`)).status
    )
  )
  t.same([...new Set(answers)].sort(), [200, 429])
  t.equal(answers.filter(status => status === 200).length, 30)
})
