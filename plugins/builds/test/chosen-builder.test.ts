import { Readable } from 'node:stream'
import { builders } from 'busbar/api/builds'
import { imageService } from 'busbar/api/images'
import { definePlugin } from 'busbar/sdk'
import { test } from 'tap'
import { pack } from 'tar-fs'
import { requireEngine } from '../../../lab/engine.js'
import { openLab, sample } from '../../deployments/test/deploy-lab.js'

/** Somebody else's: builds what `Bazelfile` says, which is a Dockerfile here. */
const bazel = definePlugin({
  id: 'bazel',
  needs: { images: imageService },
  start: ({ use }) => use,
  contributes(contribute, { images }) {
    contribute(builders, 'bazel', {
      build: async (
        {
          directory,
          tag,
          projectId,
          applicationId,
          deploymentId,
          noCache,
          limits = { memoryBytes: 2 ** 29, cpus: 1 }
        },
        { log, signal }
      ) => {
        log({ level: 'info', msg: 'bazel builds' })
        return await images.build(
          Readable.from(pack(directory)),
          {
            tag,
            dockerfile: 'Bazelfile',
            buildArgs: {},
            owner: { projectId, applicationId, deploymentId },
            noCache,
            ...limits
          },
          { signal, onLine: msg => log({ level: 'info', stream: 'stdout', msg }) }
        )
      }
    })
    // An application that runs an image is never built, whatever somebody calls his builder.
    contribute(builders, 'image', {
      build: async () => {
        throw new Error('never asked')
      }
    })
  }
})
const source = (version: string) => {
  const { Dockerfile, ...files } = sample(version)
  return { ...files, Bazelfile: Dockerfile ?? '' }
}

void test('the builder of somebody else is chosen, builds, and is missed by name when its plugin is off', async t => {
  if (!(await requireEngine(t))) return
  const lab = await openLab({
    inline: [
      {
        manifest: { id: 'bazel', requires: { builds: '^0.1.0', images: '^0.1.0' } },
        definition: bazel
      }
    ]
  })
  t.teardown(async () => await lab.close())
  const admin = await lab.k.as.session()
  const web = await lab.application('web', source('one'), { build_type: 'bazel' })
  t.equal((await web.read()).build_type, 'bazel')
  const first = await web.deployed()
  t.match(first, { status: 'success', error_message: null })
  t.match(first.build_logs, /bazel builds/)
  t.equal(await (await fetch((await web.read()).direct_url)).text(), 'one')

  const other = await lab.application('other', { ...source('two'), ...sample('two') })
  t.match(await admin.put(other.path, { build_type_override: 'bazel' }), {
    status: 200,
    body: { build_type: 'dockerfile', build_type_override: 'bazel' }
  })
  t.match((await other.deployed()).build_logs, /bazel builds/)

  const there = (field: string) =>
    new RegExp(`^${field} must be .*one of bazel, buildpacks, dockerfile, nixpacks, railpack, static\\b`)
  const body = { name: 'x', type: 'git', source_repo: 'https://git.example.com/a.git' }
  t.match(await admin.post(`/api/projects/${lab.projectId}/applications`, { ...body, build_type: 'buck' }), {
    status: 400,
    body: { error: there('build_type') }
  })
  t.match(await admin.put(web.path, { build_type_override: 'image' }), {
    status: 400,
    body: { error: there('build_type_override') }
  })

  t.equal((await admin.post('/api/plugins/bazel/disable')).status, 200)
  t.match(await admin.post(`/api/projects/${lab.projectId}/applications`, { ...body, build_type: 'bazel' }), {
    status: 400,
    body: { error: /build_type must be one of buildpacks, dockerfile, nixpacks, railpack, static\b/ }
  })
  t.equal((await web.read()).build_type, 'bazel', 'it is kept')
  t.match(
    await admin.put(other.path, { name: 'renamed', build_type_override: 'bazel' }),
    { status: 200, body: { build_type_override: 'bazel' } },
    'what is stored may be sent back'
  )
  const failed = await web.deployed()
  t.match(failed, {
    status: 'failed',
    step: 'prepare-image',
    error_message:
      /no builder for the build type bazel: available are buildpacks, dockerfile, .*turn on the plugin that provides bazel/
  })
  t.equal(await (await fetch((await web.read()).direct_url)).text(), 'one', 'what runs goes on')

  t.equal((await admin.post('/api/plugins/bazel/enable')).status, 200)
  t.match(await web.deployed(), { status: 'success' })
})

void test('while nobody builds, applications keep and take the build types of the contract', async t => {
  if (!(await requireEngine(t))) return
  const lab = await openLab()
  t.teardown(async () => await lab.close())
  const admin = await lab.k.as.session()
  t.equal((await admin.post('/api/plugins/builds/disable', { cascade: true })).status, 200)
  const body = { name: 'x', type: 'git', source_repo: 'https://git.example.com/a.git' }
  t.match(
    await admin.post(`/api/projects/${lab.projectId}/applications`, { ...body, build_type: 'railpack' }),
    { status: 201, body: { build_type: 'railpack' } }
  )
  t.match(await admin.post(`/api/projects/${lab.projectId}/applications`, { ...body, build_type: 'buck' }), {
    status: 400,
    body: { error: /build_type must be one of buildpacks, dockerfile, nixpacks, railpack, static\b/ }
  })
})
