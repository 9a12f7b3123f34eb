import { codeOwners } from './code-owners.js'

/** Code that a plugin brings may be deep in libraries of its own. */
const framesLooked = 100

/**
 * When the process ends is for its operator to say. Libraries that were written for programs call `process.exit` when they
 * are used wrongly: where code of a third-party plugin is on the stack, that throws.
 */
export function keepProcessRunning(): void {
  if (isKept) return
  isKept = true
  keep('exit')
  keep('abort')
  keep('kill', ([pid, signal]) => pid === process.pid && signal !== 0)
}

// As the frames, it is of the process and not of a kernel.
let isKept = false

function keep(
  name: 'exit' | 'abort' | 'kill',
  ends: (args: readonly unknown[]) => boolean = () => true
): void {
  const original = process[name] as (...args: unknown[]) => unknown
  const value = (...args: unknown[]): unknown => {
    const plugin = ends(args) ? callerOf() : undefined
    if (plugin === undefined) return original.apply(process, args)
    throw new Error(
      `process.${name}(${args.map(String).join(', ')}) was called by the plugin "${plugin}": it would end the platform. Throw an error instead`
    )
  }
  Object.defineProperty(process, name, { value, configurable: true, writable: true })
}

function callerOf(): string | undefined {
  const usual = Error.stackTraceLimit
  Error.stackTraceLimit = framesLooked
  try {
    return codeOwners(new Error('to see who calls'))[0]
  } finally {
    Error.stackTraceLimit = usual
  }
}
