import type { Log } from 'busbar/sdk'
import { codeOwner } from './code-owners.js'
import { faultOf } from './fault.js'
import { currentPlugin, endConnection, kernelOwner } from './frames.js'

/** Where errors that nobody caught are told. */
interface StrayReport {
  readonly log: Log
  readonly reconciler: { noteStray(plugin: string, error: unknown): void }
}

/**
 * Takes every error of the process that nobody caught. It ends the connection for which it was thrown and
 * marks the plugin in whose frame; one of neither is a fault of the kernel itself, and ends the process.
 */
export function catchStrays(exit: (error: unknown) => void = () => process.exit(1)): {
  reportTo(report: StrayReport): void
} {
  let report: StrayReport | undefined
  // Plugins start before there is a kernel to tell.
  const early: Array<readonly [plugin: string | undefined, error: Error]> = []

  const tell = ({ log, reconciler }: StrayReport, plugin: string | undefined, error: Error): void => {
    log.error({ err: error, plugin }, 'an error was not caught')
    if (plugin !== undefined && plugin !== kernelOwner) reconciler.noteStray(plugin, error)
  }
  const take = (thrown: unknown): void => {
    const error = faultOf(thrown)
    const plugin = currentPlugin() ?? codeOwner(error)
    endConnection()
    if (report !== undefined) tell(report, plugin, error)
    else early.push([plugin, error])
    if (plugin !== undefined) return
    if (report === undefined)
      process.stderr.write(`Busbar ends, an error was not caught: ${error.stack ?? error.message}\n`)
    exit(error)
  }
  process.on('uncaughtException', take)
  process.on('unhandledRejection', take)
  return {
    reportTo(found) {
      report = found
      for (const [plugin, error] of early.splice(0)) tell(found, plugin, error)
    }
  }
}
