import { existsSync } from 'node:fs'
import { readdir } from 'node:fs/promises'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import type { AnyPlugin } from 'busbar/sdk'
import { describeApi } from '../../core/declarations/openapi.js'
import { record } from '../../core/declarations/recorder.js'
import { kernelPlugin } from '../../core/kernel-plugin.js'

/** The OpenAPI description of the kernel and all built-in plugins, from their declarations: nothing is started. */
export async function describeBuiltIns(root: string): Promise<any> {
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
  return describeApi([...record(kernelPlugin, { id: 'kernel', builtIn: true }).routes, ...plugins.flat()])
}
