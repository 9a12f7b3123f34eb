import type { SocketSpec, TSchema } from 'busbar/sdk'
import { checkSchema } from '../schemas/schemas.js'
import { accessFaults } from './access-faults.js'
import { frozen, paramsOf, problemsOf, type RecordContext, shapeOf } from './declared-parts.js'
import type { SocketRecord } from './records.js'
import { routeValueFaults, segmentFaults } from './value-faults.js'

export function socketFaults(
  spec: SocketSpec<string, object>,
  { id, builtIn, kinds = [] }: RecordContext,
  earlier: readonly SocketRecord[]
): string[] {
  if (typeof spec.url !== 'string') return ['it has no url']
  const faults = accessFaults(spec.access, paramsOf(spec.url), kinds)
  const prefix = builtIn ? '/api/ws/' : `/api/ws/x/${id}/`
  if (!spec.url.startsWith(prefix)) faults.push(`a socket's path begins with ${prefix}`)
  else faults.push(...segmentFaults(spec.url))
  if (earlier.some(other => shapeOf(other.url) === shapeOf(spec.url))) faults.push('declared twice')
  if (typeof spec.handler !== 'function') faults.push('it has no handler')
  if (typeof spec.summary !== 'string' || spec.summary === '') faults.push('it has no summary')
  if (spec.access?.kind === 'public') faults.push('a socket cannot be public')
  const { operationId, group, description, problems, params } = spec
  faults.push(...routeValueFaults({ operationId, group, description, problems }))
  for (const [name, schema] of Object.entries<TSchema | undefined>(params ?? {})) {
    const fault = checkSchema(schema)
    if (fault !== null) faults.push(`the schema of ${name} is not valid: ${fault}`)
  }
  return faults
}

export function socketRecord(spec: SocketSpec<string, object>, { id }: RecordContext): SocketRecord {
  return Object.freeze({
    plugin: id,
    url: spec.url,
    params: paramsOf(spec.url),
    access: frozen(spec.access, 'access', spec),
    operationId: spec.operationId,
    group: spec.group ?? id,
    summary: spec.summary,
    description: spec.description,
    problems: problemsOf(spec),
    schema: spec.params === undefined ? {} : { params: spec.params },
    accept: spec.accept,
    handler: spec.handler
  })
}
