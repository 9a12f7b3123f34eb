import { existsSync } from 'node:fs'
import { readdir } from 'node:fs/promises'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import type { AnyPlugin } from 'busbar/sdk'
import { describeChannels } from '../../core/declarations/asyncapi.js'
import { describeApi } from '../../core/declarations/openapi.js'
import { record } from '../../core/declarations/recorder.js'
import type { PluginRecords, RouteRecord, SocketRecord } from '../../core/declarations/records.js'
import { kernelPlugin } from '../../core/kernel-plugin.js'

/** What the kernel and all built-in plugins declare: nothing is started. */
async function builtInRecords(root: string): Promise<PluginRecords[]> {
  const folder = join(root, 'plugins')
  const ids = (await readdir(folder)).filter(id => existsSync(join(folder, id, 'plugin.json'))).sort()
  const plugins = await Promise.all(
    ids.map(async id => {
      const { default: definition } = (await import(pathToFileURL(join(folder, id, 'index.ts')).href)) as {
        default: AnyPlugin
      }
      return record(definition, { id, builtIn: true })
    })
  )
  return [record(kernelPlugin, { id: 'kernel', builtIn: true }), ...plugins]
}

export const builtInRoutes = async (root: string): Promise<RouteRecord[]> =>
  (await builtInRecords(root)).flatMap(({ routes }) => routes)

/** Their WebSockets, which are no calls of a client. */
export const builtInSockets = async (root: string): Promise<SocketRecord[]> =>
  (await builtInRecords(root)).flatMap(({ sockets }) => sockets)

/** Their OpenAPI description. */
export const describeBuiltIns = async (root: string): Promise<any> => describeApi(await builtInRoutes(root))

/** The AsyncAPI description of their channels. */
export const describeBuiltInChannels = async (root: string): Promise<any> =>
  describeChannels((await builtInRecords(root)).flatMap(({ channels }) => channels))
