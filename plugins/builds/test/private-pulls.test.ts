import { randomUUID } from 'node:crypto'
import type { ContainerRuntime, ImageInfo } from 'busbar/api/runtime-docker'
import { type Database, definePlugin, kernel } from 'busbar/sdk'
import { createTestKernel } from 'busbar/sdk/testing'
import { type Test, test } from 'tap'
import { createPrivateImage } from '../migrations/003-create-private-image.js'
import { createPrivatePull } from '../migrations/005-create-private-pull.js'
import { resolveImage } from '../registry/image-resolver.js'
import { PrivateImageStore, settlePull } from '../registry/private-images.js'
import { pullImage } from '../registry/pulled-image.js'
import { recorder } from './kit.js'

const reference = 'registry.example.com/team/app:1'
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
  const behaviour = { afterPull: async (): Promise<void> => {} }
  const runtime: Pick<ContainerRuntime, 'image' | 'pull'> = {
    image: async name => held.get(name),
    pull: async (name, options) => {
      if (options.auth === undefined) throw new Error('the registry hands it out to nobody')
      held.set(name, secret)
      await behaviour.afterPull()
      return secret
    }
  }
  return { runtime: runtime as ContainerRuntime, behaviour, held }
}

async function openStore(t: Test): Promise<PrivateImageStore> {
  let db: Database | undefined
  const definition = definePlugin({
    id: 'pulls',
    needs: { db: kernel.database },
    migrations: [createPrivateImage, createPrivatePull],
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
  return new PrivateImageStore(db, { now: () => new Date() })
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
    const left = { name: reference, applicationId: again, beforeId: null }
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
