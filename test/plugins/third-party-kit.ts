import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createTestKernel, type TestClient, type TestKernel, until } from 'busbar/sdk/testing'
import type { Test } from 'tap'

/** Everything a plugin of a test may use; `open` lets every signed-in caller in. */
const head = `import * as sdk from 'busbar/sdk'
const { access, allow, definePlugin, event, extensionPoint, healthChecks, kernel, object, optional, Problem, service, sse, Type } = sdk
const open = allow.token('read', { project: 'none' })
`
const allGrants = ['database', 'jobs', 'schedules', 'events', 'bus', 'secrets', 'exec', 'clock', 'instance']

/** Third-party plugins as text: `members` are those of the definition. */
export async function writePlugin(
  home: string,
  id: string,
  members: string,
  { before = '', manifest = {} }: { readonly before?: string; readonly manifest?: object } = {}
): Promise<void> {
  const folder = join(home, id)
  await mkdir(folder, { recursive: true })
  await writeFile(
    join(folder, 'plugin.json'),
    JSON.stringify({
      id,
      version: '1.0.0',
      sdk: '^0.1.0',
      name: id,
      description: 'A test.',
      grants: allGrants,
      ...manifest
    })
  )
  await writeFile(
    join(folder, 'index.js'),
    `${head}${before}\nexport default definePlugin({ id: '${id}', ${members} })\n`
  )
}

/** One route of a plugin, as text. */
export const routeText = (id: string, name: string, handler: string, more = ''): string =>
  `route({ method: 'GET', url: '/api/x/${id}/${name}', summary: 's', access: open, handler: ${handler}, ${more} });`

export interface Installation {
  readonly k: TestKernel
  readonly home: string
  readonly admin: TestClient
  readonly write: (id: string, members: string, more?: Parameters<typeof writePlugin>[3]) => Promise<void>
  change(
    id: string,
    what: 'enable' | 'disable' | 'reload' | 'purge',
    body?: object
  ): Promise<Awaited<ReturnType<TestClient['post']>>>
}

/** A platform whose third-party plugins are written while it runs. */
export async function installation(t: Test): Promise<Installation> {
  const home = await mkdtemp(join(tmpdir(), 'busbar-plugins-'))
  const k = await createTestKernel({ thirdParty: home })
  t.teardown(async () => {
    await k.close()
    await rm(home, { recursive: true, force: true })
  })
  const admin = await k.as.session()
  return {
    k,
    home,
    admin,
    write: async (id, members, more) => await writePlugin(home, id, members, more),
    change: async (id, what, body = {}) => await admin.post(`/api/plugins/${id}/${what}`, body)
  }
}

/** Whether it is true within `ms`: an outcome that a process tells its test. Tests themselves wait with `until`. */
export async function within(ms: number, isTrue: () => boolean | Promise<boolean>): Promise<boolean> {
  return await until(isTrue, 'it is true', ms).catch(() => false)
}
