import { MessageChannel, Worker } from 'node:worker_threads'
import { faultOf } from '../frames/fault.js'
import { workerEntry } from '../threads/worker-entry.js'
import { LoadError } from './definition.js'

const timeLimitMs = 5_000
const workerLimitMs = 30_000
const memoryLimitMb = 128

/**
 * Loads and records a third-party plugin in a worker thread first: a loop at load, an exit, a duplicate
 * or a bad declaration is found there and never reaches the main thread.
 */
export async function rehearse(id: string, file: string): Promise<void> {
  const { entry, ...how } = workerEntry('rehearsal-worker', import.meta.url)
  const { port1, port2 } = new MessageChannel()
  const worker = new Worker(entry, {
    ...how,
    workerData: { id, file, port: port2 },
    transferList: [port2],
    resourceLimits: { maxOldGenerationSizeMb: memoryLimitMb },
    stdout: true,
    stderr: true,
    env: {}
  })
  let timer: NodeJS.Timeout | undefined
  try {
    const fault = await new Promise<string | null>(resolve => {
      const limit = (ms: number): void => {
        clearTimeout(timer)
        timer = setTimeout(() => {
          resolve(`it did not finish loading within ${timeLimitMs / 1000} s`)
        }, ms)
      }
      limit(workerLimitMs)
      port1.on('message', (message: { fault: string | null } | 'ready') => {
        // From here on it is the plugin that takes the time, and not a busy machine that starts a thread.
        if (message === 'ready') limit(timeLimitMs)
        else resolve(message.fault)
      })
      worker.on('error', (error: unknown) => {
        resolve(`it failed while loading: ${faultOf(error).message}`)
      })
      worker.on('exit', code => {
        // What it said before may still be on its way.
        setImmediate(() => {
          resolve(`it ended the process while loading (exit code ${code})`)
        })
      })
    })
    if (fault !== null) throw new LoadError(fault)
  } finally {
    clearTimeout(timer)
    port1.close()
    await worker.terminate()
  }
}
