import { randomUUID } from 'node:crypto'
import type { ContainerRuntime, ImageInfo } from 'busbar/api/runtime-docker'
import { type Database, definePlugin, kernel } from 'busbar/sdk'
import { createTestKernel } from 'busbar/sdk/testing'
import { type Test, test } from 'tap'
import { createPrivateImage } from '../migrations/003-create-private-image.js'
import { createPrivatePull } from '../migrations/005-create-private-pull.js'
import { createPrivateImageRepository } from '../migrations/006-create-private-image-repository.js'
import { createPrivateLayer } from '../migrations/007-create-private-layer.js'
import { resolveImage } from '../registry/image-resolver.js'
import { PrivateImageStore, settlePull } from '../registry/private-images.js'
import { pullImage } from '../registry/pulled-image.js'
import { recorder } from './kit.js'

const reference = 'registry.example.com/team/app:1'
const repository = 'registry.example.com/team/app'
const secret = {
  id: `sha256:${'5'.repeat(64)}`,
  repoTags: [reference],
  repoDigests: [`registry.example.com/team/app@sha256:${'6'.repeat(64)}`]
} as unknown as ImageInfo
const auth = { username: 'ann', password: 'hunter22' }
const cancelled = new Error('the deployment was cancelled')

/** An engine that holds what it has pulled, and a registry that hands it out to whoever has the account. */
function engine() {
  const held = new Map<string, ImageInfo>()
  const behaviour = { afterPull: async (): Promise<void> => {}, own: '', hasLayers: false }
  const runtime: Pick<
    ContainerRuntime,
    'image' | 'isStepOfBuild' | 'layersOfNamed' | 'pull' | 'removeImage'
  > = {
    isStepOfBuild: async () => false,
    layersOfNamed: async () => new Map(),
    image: async name => held.get(name),
    removeImage: async name => {
      held.delete(name)
    },
    pull: async (name, options) => {
      if (name === behaviour.own) {
        if (behaviour.hasLayers) options.onLayer?.(false)
        held.set(name, secret)
        return secret
      }
      if (options.auth === undefined) throw new Error('the registry hands it out to nobody')
      held.set(name, secret)
      await behaviour.afterPull()
      return secret
    }
  }
  return { runtime: runtime as ContainerRuntime, behaviour, held }
}

async function openStore(t: Test, reason: string | null = 'it has nothing'): Promise<PrivateImageStore> {
  let db: Database | undefined
  const definition = definePlugin({
    id: 'pulls',
    needs: { db: kernel.database },
    migrations: [createPrivateImage, createPrivatePull, createPrivateImageRepository, createPrivateLayer],
    start: ({ use }) => {
      db = use.db
      return {}
    }
  })
  const k = await createTestKernel({
    inline: [{ manifest: { id: 'pulls', grants: ['database'] }, definition }]
  })
  t.teardown(async () => await k.close())
  if (db === undefined) throw new Error('the plugin has not started')
  return new PrivateImageStore(db, { now: () => new Date() }, async () => reason ?? undefined)
}

test('an image that was pulled with an account is its application’s, however the pull ends', async t => {
  const privateImages = await openStore(t)
  const owner = randomUUID()
  const other = randomUUID()
  const { runtime, behaviour, held } = engine()
  const parts = { runtime, privateImages }
  const build = async (applicationId: string): Promise<string> =>
    (await resolveImage(parts, { reference, applicationId }, recorder())).id
  const pull = async (): Promise<unknown> =>
    await pullImage(
      parts,
      { image: reference, applicationId: owner, deploymentId: randomUUID(), auth },
      recorder()
    )

  await t.test('while it is under way', async t => {
    behaviour.afterPull = async () => {
      await t.rejects(build(other), /hands it out to nobody/)
      t.equal(await build(owner), secret.id)
      throw cancelled
    }
    await t.rejects(pull(), cancelled)
  })

  await t.test('when it was cancelled as it ended', async t => {
    t.ok(held.has(reference))
    await t.rejects(build(other), /hands it out to nobody/)
    t.equal(await build(owner), secret.id)
  })

  await t.test('when the process died over it: the mark of the pull stays until the next look', async t => {
    const [again, late] = [randomUUID(), await openStore(t)]
    const engines = engine()
    const left = { name: reference, applicationId: again, repository, beforeId: null }
    await late.beginPull(left)
    engines.held.set(reference, secret)
    const others = { runtime: engines.runtime, privateImages: late }
    const attempt = async () => await resolveImage(others, { reference, applicationId: other }, recorder())
    await t.rejects(attempt(), /hands it out to nobody/)
    t.same(await late.pullsBefore(new Date(Date.now() + 1_000)), [left])
    await settlePull(others, left)
    t.same(await late.pullsBefore(new Date(Date.now() + 1_000)), [])
    await t.rejects(attempt(), /hands it out to nobody/)
  })
})

test('a pull with an account that brings nothing new takes nothing away from others', async t => {
  const privateImages = await openStore(t)
  const { runtime, behaviour, held } = engine()
  held.set(reference, secret)
  behaviour.afterPull = async () => {
    throw cancelled
  }
  const parts = { runtime, privateImages }
  await t.rejects(
    pullImage(
      parts,
      { image: reference, applicationId: randomUUID(), deploymentId: randomUUID(), auth },
      recorder()
    ),
    cancelled
  )
  t.equal((await resolveImage(parts, { reference, applicationId: randomUUID() }, recorder())).id, secret.id)
})

test('while a pull with an account runs, others do without the registry where it can change nothing', async t => {
  const privateImages = await openStore(t)
  const { runtime, behaviour, held } = engine()
  held.set(reference, secret)
  const parts = { runtime, privateImages }
  const other = randomUUID()
  const look = async (name: string): Promise<string> =>
    (await resolveImage(parts, { reference: name, applicationId: other }, recorder())).id
  const during = async (image: string, then: () => Promise<void>): Promise<void> => {
    behaviour.afterPull = then
    await pullImage(
      parts,
      { image, applicationId: randomUUID(), deploymentId: randomUUID(), auth },
      recorder()
    )
  }
  await during(reference, async () => {
    t.equal(await look(reference), secret.id, 'what was there before')
  })
  held.set(reference, { ...secret, id: `sha256:${'7'.repeat(64)}` })
  await during(`${repository}:2`, async () => {
    t.equal(await look(reference), `sha256:${'7'.repeat(64)}`, 'another tag')
    await t.rejects(
      look(secret.repoDigests[0] ?? ''),
      /hands it out to nobody/,
      'a digest may be that of any tag'
    )
  })
})

test('two pulls at once: what needed an account is nobody else’s, and what did not is taken from nobody', async t => {
  const own = 'own.example.com/x:1'
  const cases = [
    { isHeld: true, code: 'E_IMAGE_FOREIGN' },
    // The engine shares layers that it is pulling for another one, and says nothing of it.
    { isHeld: false, code: 'E_IMAGE_LAYER' },
    { isHeld: false, code: undefined }
  ]
  for (const { isHeld, code } of cases) {
    const privateImages = await openStore(t, code === undefined ? null : 'it has nothing')
    const { runtime, behaviour } = engine()
    const parts = { runtime, privateImages }
    const pull = async (applicationId: string): Promise<unknown> =>
      await pullImage(parts, { image: own, applicationId, deploymentId: randomUUID() }, recorder())
    behaviour.own = own
    const other = randomUUID()
    behaviour.afterPull = async () => {
      behaviour.hasLayers = !isHeld
      if (code !== undefined) await t.rejects(pull(other), { code })
      else await t.resolves(pull(other))
    }
    await pullImage(
      parts,
      { image: reference, applicationId: randomUUID(), deploymentId: randomUUID(), auth },
      recorder()
    )
    behaviour.hasLayers = false
    for (const application of [other, randomUUID()]) {
      if (code !== undefined) await t.rejects(pull(application), { code: 'E_IMAGE_FOREIGN' })
      else await t.resolves(pull(application))
    }
  }
})

test('what was refused stays refused where the engine keeps its name', async t => {
  const privateImages = await openStore(t)
  const [own, layer] = ['own.example.com/x:1', `sha256:${'8'.repeat(64)}`]
  await privateImages.noteLayers([layer], randomUUID())
  const image = {
    ...secret,
    repoTags: [own],
    repoDigests: [`own.example.com/x@sha256:${'6'.repeat(64)}`],
    layers: [layer]
  }
  let isHeld = false
  const runtime = {
    image: async (name: string) => (isHeld && name === own ? image : undefined),
    isStepOfBuild: async () => false,
    layersOfNamed: async () => new Map(),
    removeImage: async () => {
      throw new Error('it has the labels of another installation')
    },
    pull: async (_name: string, { onLayer }: Parameters<ContainerRuntime['pull']>[1]) => {
      if (!isHeld) onLayer?.(false)
      isHeld = true
      return image
    }
  } as unknown as ContainerRuntime
  const parts = { runtime, privateImages }
  const applicationId = randomUUID()
  for (const account of [auth, undefined, auth])
    await t.rejects(
      pullImage(
        parts,
        {
          image: own,
          applicationId,
          deploymentId: randomUUID(),
          ...(account !== undefined && { auth: account })
        },
        recorder()
      ),
      { code: 'E_IMAGE_LAYER' }
    )
  await t.rejects(resolveImage(parts, { reference: own, applicationId }, recorder()), {
    code: 'E_IMAGE_LAYER'
  })
})
