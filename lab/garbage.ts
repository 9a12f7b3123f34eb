import v8 from 'node:v8'
import vm from 'node:vm'

v8.setFlagsFromString('--expose-gc')
const collect = vm.runInNewContext('gc') as () => void

/** Collects garbage again and again until what is returned is called: what only weak references hold does not stay. For small processes: one that runs the platform would do little else. */
export function collectRepeatedly(): () => void {
  const timer = setInterval(collect, 100)
  return () => clearInterval(timer)
}

/** What this process holds when its garbage is gone, in bytes. Takes a tenth of a second where the platform runs. */
export function heldBytes(): number {
  collect()
  const { heapUsed, external } = process.memoryUsage()
  return heapUsed + external
}

/** The bytes of buffers that this process holds when its garbage is gone: V8 lets those that grew old go only when it collects everything, which may be long after. */
export function heldBuffers(): number {
  collect()
  return process.memoryUsage().arrayBuffers
}
