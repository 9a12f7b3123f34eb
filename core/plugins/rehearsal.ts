import { Worker } from 'node:worker_threads'
import { LoadError } from './definition.js'

const timeLimitMs = 5_000
const workerLimitMs = 30_000
const memoryLimitMb = 128

/**
 * Loads and records a third-party plugin in a worker thread first: a loop at load, an exit, a duplicate
 * or a bad declaration is found there and never reaches the main thread.
 */
export async function rehearse (id: string, file: string): Promise<void> {
  const { entry, ...how } = workerEntry()
  const worker = new Worker(entry, {
    ...how,
    workerData: { id, file },
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
        timer = setTimeout(() => { resolve(`it did not finish loading within ${timeLimitMs / 1000} s`) }, ms)
      }
      limit(workerLimitMs)
      worker.on('message', (message: { fault: string | null } | 'ready') => {
        // From here on it is the plugin that takes the time, and not a busy machine that starts a thread.
        if (message === 'ready') limit(timeLimitMs)
        else resolve(message.fault)
      })
      worker.on('error', error => { resolve(`it failed while loading: ${error.message}`) })
      worker.on('exit', code => { resolve(`it ended the process while loading (exit code ${code})`) })
    })
    if (fault !== null) throw new LoadError(fault)
  } finally {
    clearTimeout(timer)
    await worker.terminate()
  }
}

/** Compiled, the worker lies beside this file. From source, a worker does not inherit its parent's TypeScript loader. */
function workerEntry (): { entry: URL | string, eval?: boolean } {
  if (!import.meta.url.endsWith('.ts')) return { entry: new URL('./rehearsal-worker.js', import.meta.url) }
  const loader = JSON.stringify(import.meta.resolve('tsx/esm/api'))
  const source = JSON.stringify(new URL('./rehearsal-worker.ts', import.meta.url).href)
  return { entry: `import(${loader}).then(({ register }) => { register(); return import(${source}) })`, eval: true }
}
