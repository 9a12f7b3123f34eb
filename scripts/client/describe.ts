import { existsSync } from 'node:fs'
import { readdir } from 'node:fs/promises'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import type { AnyPlugin } from 'busbar/sdk'
import { describeApi } from '../../core/declarations/openapi.js'
import { record } from '../../core/declarations/recorder.js'
import type { RouteRecord } from '../../core/declarations/records.js'
import { kernelPlugin } from '../../core/kernel-plugin.js'

/** The routes of the kernel and all built-in plugins, from their declarations: nothing is started. */
export async function builtInRoutes(root: string): Promise<RouteRecord[]> {
  const folder = join(root, 'plugins')
  const ids = (await readdir(folder)).filter(id => existsSync(join(folder, id, 'plugin.json'))).sort()
  const plugins = await Promise.all(
    ids.map(async id => {
      const { default: definition } = (await import(pathToFileURL(join(folder, id, 'index.ts')).href)) as {
        default: AnyPlugin
      }
      return record(definition, { id, builtIn: true }).routes
    })
  )
  return [...record(kernelPlugin, { id: 'kernel', builtIn: true }).routes, ...plugins.flat()]
}

/** Their OpenAPI description. */
export const describeBuiltIns = async (root: string): Promise<any> => describeApi(await builtInRoutes(root))
