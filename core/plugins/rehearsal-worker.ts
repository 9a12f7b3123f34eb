import { pathToFileURL } from 'node:url'
import { parentPort, workerData } from 'node:worker_threads'
import { importDefinition } from './definition.js'
import { record } from './recorder.js'

const { id, file } = workerData as { id: string, file: string }

parentPort?.postMessage('ready')
let fault: string | null = null
try {
  record(await importDefinition(pathToFileURL(file).href), { id, builtIn: false })
} catch (error) {
  fault = (error as Error).message
}
parentPort?.postMessage({ fault })
