import { randomBytes } from 'node:crypto'
import { buffer } from 'node:stream/consumers'
import { preparedImages } from 'busbar/api/builds'
import { imageService } from 'busbar/api/images'
import { until } from 'busbar/sdk/testing'
import { test } from 'tap'
import { pack } from 'tar-stream'
import { requireDockerRegistry, startDockerRegistry } from '../../../lab/docker-registry.js'
import { requireEngine } from '../../../lab/engine.js'
import { engine, openLab } from './deploy-lab.js'

const mebi = 2 ** 20

test('an image that was fetched is counted for who keeps it, and goes when that does without it', async t => {
  if (!(await requireEngine(t)) || !(await requireDockerRegistry(t))) return
  const lab = await openLab()
  t.teardown(() => lab.close())
  const registry = await startDockerRegistry(t)
  const architecture = (await engine.version()).Arch
  const push = async (version: string): Promise<void> => {
    const tar = pack()
    const packed = buffer(tar)
    tar.entry({ name: 'server' }, randomBytes(3 * mebi))
    tar.finalize()
    await registry.push('team/app', version, { architecture, layer: await packed, command: ['/server'] })
  }
  await push('1')
  const admin = await lab.k.as.session()
  const all = `/api/projects/${lab.projectId}/applications`
  const fields = { type: 'image', build_type: 'image', source_image: `${registry.host}/team/app:1` }
  const applicationId: string = (await admin.post(all, { name: 'img', ...fields })).body.id
  const path = `${all}/${applicationId}`
  /** It is fetched, and nothing runs from it. */
  const fetched = async () => {
    const begun = await admin.post(`${path}/build`)
    let seen = begun.body
    await until(
      async () => {
        seen = (await admin.get(`${path}/deployments/${begun.body.id as string}`)).body
        return seen.finished_at !== null
      },
      'it to be fetched',
      120_000
    )
    t.match(seen, { status: 'success', error_message: null })
    return seen
  }
  const first = await fetched()
  await push('1')
  const second = await fetched()
  t.not(first.image_tag, second.image_tag)

  const prepared = lab.k.service(preparedImages)
  const kept = async () => (await prepared.fetched()).filter(one => one.applicationId === applicationId)
  t.same(
    new Set((await kept()).map(({ reference }) => reference)),
    new Set([first.image_tag, second.image_tag])
  )
  const uses = await lab.k.service(imageService).imageUse({ allMs: 30_000 })
  for (const { name } of await kept()) {
    const use = uses.find(({ names }) => names.includes(name))
    t.match(use, { owner: undefined, containerIds: [], parts: [{ bytes: 3 * mebi }] })
  }

  // As a minute later: until then a fetch is claimed by the deployment that it was for.
  await lab.k.query('update builds.preparation set claimed_until = now()')
  await prepared.release(applicationId, first.image_tag)
  t.same(
    (await kept()).map(({ reference }) => reference),
    [second.image_tag]
  )
  t.equal(await prepared.find(applicationId, first.image_tag), undefined)
  t.match(await admin.post(`${path}/rollback`, { deployment_id: first.id }), {
    status: 409,
    body: { code: 'E_DEPLOYMENT_IMAGE_GONE' }
  })
  t.ok(await prepared.find(applicationId, second.image_tag))
})
