import { randomUUID } from 'node:crypto'
import { type TestKernel, until } from 'busbar/sdk/testing'
import { directAddresses } from '../api.js'

/** An application that exists, since an address is nobody's without one. */
export interface TestApplication {
  readonly id: string
  readonly slug: string
  /** Below `/api`: where it is read and deleted. */
  readonly path: string
}

export async function createApplication(k: TestKernel): Promise<TestApplication> {
  const admin = await k.as.session()
  const project = await admin.post('/api/projects', { name: 'P', slug: `p-${randomUUID().slice(0, 8)}` })
  const all = `/api/projects/${project.body.id}/applications`
  const { body } = await admin.post(all, {
    name: 'a',
    type: 'image',
    build_type: 'image',
    source_image: 'busybox:lab'
  })
  return { id: body.id, slug: body.slug, path: `${all}/${body.id}` }
}

/** An application with a direct address, as its first deploy gives it one: in `opener`, of several processes. */
export async function openApplication(
  k: TestKernel,
  opener = k
): Promise<TestApplication & { readonly url: string }> {
  const application = await createApplication(k)
  return { ...application, url: (await opener.service(directAddresses).open(application.id)).url }
}

/** Deletes it by the API, and waits until nobody listens at its address. */
export async function deleteApplication(
  k: TestKernel,
  { path, url }: { path: string; url: string }
): Promise<void> {
  await (await k.as.session()).delete(path)
  const isClosed = async (): Promise<boolean> =>
    await fetch(url).then(
      () => false,
      () => true
    )
  await until(isClosed, 'its address is closed')
}
