import type { AnyPlugin } from 'busbar/sdk'
import type { PluginRecords } from '../declarations/records.js'
import { answerWriter } from '../http/answer-writer.js'
import { compileFault } from '../schemas/schemas.js'
import { LoadError } from './definition.js'

/**
 * Compiles every schema of a plugin, and throws what is wrong with them. The platform compiles one when it is first
 * used: without this, an author would hear of a faulty one from the first request.
 */
export function rehearseSchemas({ config }: AnyPlugin, { routes }: PluginRecords): void {
  const faults: string[] = []
  const note = (where: string, fault: string | null): void => {
    if (fault !== null) faults.push(`${where}: ${fault}`)
  }
  if (config !== undefined) note('the schema of config', compileFault(config as object, 'body'))
  for (const { method, url, schema } of routes) {
    const route = `route ${method} ${url}: the schema of`
    for (const [name, param] of Object.entries(schema.params ?? {}))
      if (param !== undefined) note(`${route} ${name}`, compileFault(param, 'text'))
    if (schema.query !== undefined) note(`${route} query`, compileFault(schema.query, 'text'))
    if (schema.body !== undefined) note(`${route} body`, compileFault(schema.body, 'body'))
    for (const [status, answer] of Object.entries(schema.response ?? {})) {
      if (answer === null) continue
      try {
        answerWriter({ schema: answer }).compile()
      } catch (error) {
        note(`${route} ${status}`, (error as Error).message)
      }
    }
  }
  if (faults.length > 0) throw new LoadError(faults.join('; '))
}
