import { pathToFileURL } from 'node:url'
import { type MessagePort, workerData } from 'node:worker_threads'
import { record } from '../declarations/recorder.js'
import { faultOf } from '../frames/fault.js'
import { importDefinition } from './definition.js'
import type { RehearsalMessage } from './rehearsal.js'
import { rehearseSchemas } from './schema-rehearsal.js'

const given = workerData as { id: string; file: string; port?: MessagePort }
const { id, file, port } = given
// The plugin's code may use the ports that every thread has, and is not to speak on this one.
delete given.port

const say = (message: RehearsalMessage): void => port?.postMessage(message)
say({ stage: 'ready' })
let fault: string | null = null
try {
  const definition = await importDefinition(pathToFileURL(file).href)
  const records = record(definition, { id, builtIn: false })
  say({ stage: 'loaded' })
  rehearseSchemas(definition, records)
} catch (error) {
  fault = faultOf(error).message
}
say({ fault })
