import { createHash } from 'node:crypto'
import type Docker from 'dockerode'
import type { Test } from 'tap'
import { startDockerRegistry } from '../../../lab/docker-registry.js'
import { containersOf, type DeployLab, engine, openLab } from '../../deployments/test/deploy-lab.js'
import { makeImage, push } from './hand-made-image.js'

export const account = { username: 'deployer', password: 'a-password-0123' }

export const anyLayer = { size: 1000 }

export async function openPlatform(t: Test): Promise<DeployLab> {
  const lab = await openLab()
  t.teardown(async () => await lab.close())
  return lab
}

/** Deploys an image as an application of its own; the deployment once it has ended. */
export async function deployImage(
  lab: DeployLab,
  name: string,
  image: string,
  auth?: typeof account
): Promise<{ readonly id: string; readonly deployment: any; again(): Promise<any> }> {
  const app = await lab.application(
    name,
    {},
    {
      type: 'image',
      build_type: 'image',
      source_repo: undefined,
      branch: undefined,
      source_image: image,
      ...(auth !== undefined && { registry_username: auth.username, registry_password: auth.password })
    }
  )
  return { id: app.id, deployment: await app.deployed(), again: app.deployed }
}

/** What an application runs. */
async function imageOf({ id }: { readonly id: string }): Promise<Docker.ImageInspectInfo> {
  const [container] = await containersOf(id)
  return await engine.getImage(container?.ImageID ?? '').inspect()
}

/** Names that the platform has given to images on the engine. */
export const fetchedNames = async (): Promise<string[]> =>
  (await engine.listImages())
    .flatMap(({ RepoTags }) => (RepoTags ?? []).filter(tag => tag.startsWith('busbar-fetched-')))
    .sort()

/** Those of images with the topmost layer of this one: others use the engine as well. */
export async function fetchedWith({ RootFS }: Docker.ImageInspectInfo): Promise<string[]> {
  const layer = RootFS.Layers?.at(-1)
  if (layer === undefined) throw new Error('the image has no layers')
  const found: string[] = []
  for (const name of await fetchedNames()) {
    const seen = await engine
      .getImage(name)
      .inspect()
      .catch(() => undefined)
    if (seen?.RootFS.Layers?.includes(layer)) found.push(name)
  }
  return found
}

/** A registry that names what it has not, or not as it is named, hands out nothing. */
export const refused = { status: 'failed', error_message: /incomplete or damaged/ }

/** An image that was pulled with the account of its registry, by the application `owner`. */
export async function privateImage(t: Test, lab: DeployLab) {
  const registry = await startDockerRegistry(t, { account })
  const name = `${registry.host}/team/private:1`
  await makeImage(
    t,
    name,
    `FROM busybox:lab\nRUN echo hidden-${Date.now()} > /private.txt\nCMD ["httpd", "-f", "-p", "8080"]\n`
  )
  await push(name, account)
  const owner = await deployImage(lab, 'owner', name, account)
  t.match(owner.deployment, { status: 'success' })
  return { name, owner, registry, seen: await imageOf(owner) }
}

export const sha256 = (bytes: Buffer): string => `sha256:${createHash('sha256').update(bytes).digest('hex')}`
