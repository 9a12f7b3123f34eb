import { MessageChannel, receiveMessageOnPort, Worker } from 'node:worker_threads'
import { faultOf } from '../frames/fault.js'
import { workerEntry } from '../threads/worker-entry.js'
import { LoadError } from './definition.js'

/** What the thread does, and how long it may. From `ready` on it is the plugin that takes the time, not a busy machine. */
const stages = {
  start: { ms: 30_000, what: 'its thread did not start' },
  ready: { ms: 5_000, what: 'it did not finish loading' },
  loaded: { ms: 20_000, what: 'its schemas were not compiled' }
} as const
export type RehearsalMessage = { readonly fault: string | null } | { readonly stage: 'ready' | 'loaded' }
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
      const enter = (stage: keyof typeof stages): void => {
        const { ms, what } = stages[stage]
        clearTimeout(timer)
        timer = setTimeout(() => {
          resolve(`${what} within ${ms / 1000} s`)
        }, ms)
      }
      enter('start')
      const hear = (message: RehearsalMessage): void => {
        if ('stage' in message) enter(message.stage)
        else resolve(message.fault)
      }
      port1.on('message', hear)
      worker.on('error', (error: unknown) => {
        resolve(`it failed while loading: ${faultOf(error).message}`)
      })
      worker.on('exit', code => {
        // On a busy machine its end may be told before what it has said last.
        for (let said = receiveMessageOnPort(port1); said !== undefined; said = receiveMessageOnPort(port1))
          hear(said.message as RehearsalMessage)
        resolve(`it ended the process while loading (exit code ${code})`)
      })
    })
    if (fault !== null) throw new LoadError(fault)
  } finally {
    clearTimeout(timer)
    port1.close()
    await worker.terminate()
  }
}
