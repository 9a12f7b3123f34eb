import { pathToFileURL } from 'node:url'
import { type MessagePort, workerData } from 'node:worker_threads'
import { record } from '../declarations/recorder.js'
import { faultOf } from '../frames/fault.js'
import { importDefinition } from './definition.js'
import { rehearseSchemas } from './schema-rehearsal.js'

const given = workerData as { id: string; file: string; port?: MessagePort }
const { id, file, port } = given
// The plugin's code may use the ports that every thread has, and is not to speak on this one.
delete given.port

port?.postMessage('ready')
let fault: string | null = null
try {
  const definition = await importDefinition(pathToFileURL(file).href)
  rehearseSchemas(definition, record(definition, { id, builtIn: false }))
} catch (error) {
  fault = faultOf(error).message
}
port?.postMessage({ fault })
