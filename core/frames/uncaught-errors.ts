import type { Log } from 'busbar/sdk'
import { blame } from './blame.js'
import { codeOwners, hasThirdPartyCode, isOfRelease } from './code-owners.js'
import { faultOf, stackOf } from './fault.js'
import { currentPlugin, endConnection, kernelOwner } from './frames.js'
import { handedTo } from './handed-errors.js'
import { RepeatedErrors } from './repeated-errors.js'

/** Where uncaught errors are reported. */
interface UncaughtErrorReport {
  readonly log: Log
  readonly reconciler: { noteUncaughtError(plugin: string, error: unknown): void }
  readonly health: { noteUncaught(): void }
}

/**
 * Handles every uncaught error of the process. It ends the connection for which it was thrown and
 * marks the plugin whose it is, or the whole platform where that cannot be told; see `blame.ts`. A fault of
 * the kernel itself ends the process.
 */
export function catchUncaughtErrors(exit: (error: unknown) => void = () => process.exit(1)): {
  reportTo(report: UncaughtErrorReport): void
} {
  let report: UncaughtErrorReport | undefined
  // Plugins start before there is a kernel to report to.
  const early: Array<readonly [plugin: string | undefined, error: Error]> = []

  const lines = new RepeatedErrors((plugin, error, times) => {
    report?.log.error({ err: error, plugin, ...(times > 1 ? { times } : {}) }, 'an error was not caught')
  })
  const notify = (
    { reconciler, health }: UncaughtErrorReport,
    plugin: string | undefined,
    error: Error
  ): void => {
    lines.note(plugin, error)
    if (plugin === undefined) health.noteUncaught()
    else if (plugin !== kernelOwner) reconciler.noteUncaughtError(plugin, error)
  }
  const handle = (thrown: unknown): void => {
    const error = faultOf(thrown)
    const { plugin, endsConnection, endsProcess } = blame({
      frame: currentPlugin(),
      owners: codeOwners(error),
      handedTo: handedTo(error),
      hasThirdPartyCode: hasThirdPartyCode(),
      // What is no error has got its stack here.
      isOurs: error === thrown && isOfRelease(error)
    })
    if (endsConnection) endConnection()
    if (report !== undefined) notify(report, plugin, error)
    else early.push([plugin, error])
    if (!endsProcess) return
    if (report === undefined)
      process.stderr.write(`Busbar ends, an error was not caught: ${stackOf(error) || error.message}\n`)
    exit(error)
  }
  const take = (thrown: unknown): void => {
    try {
      handle(thrown)
    } catch (failure) {
      // Code of a plugin that runs when its error is read. What is thrown here would end the process.
      handle(failure)
    }
  }
  // Before the listener: `node:domain` would take the place of that, and end the process where a listener of its own fails.
  process.setUncaughtExceptionCaptureCallback(take)
  process.on('uncaughtException', take)
  process.on('unhandledRejection', take)
  return {
    reportTo(found) {
      report = found
      for (const [plugin, error] of early.splice(0)) notify(found, plugin, error)
    }
  }
}
