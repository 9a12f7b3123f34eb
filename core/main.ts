import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { cutText, healthChecks } from 'busbar/sdk'
import { readSettings, SettingError } from './config/environment.js'
import { faultOf } from './frames/fault.js'
import { catchUncaughtErrors } from './frames/uncaught-errors.js'
import { HalfRestoredError } from './half-restored.js'
import { type Kernel, startKernel } from './kernel.js'
import { release } from './release.js'

const plugins = join(dirname(fileURLToPath(import.meta.url)), '..', 'plugins')

const repeatMs = 1_000

/** Starts the platform from the environment and ends it on SIGTERM or SIGINT. */
async function main(): Promise<void> {
  const startedAt = performance.now()
  const settings = readSettings(process.env)
  const uncaughtErrors = catchUncaughtErrors()
  const kernel = await startKernel({
    settings,
    watchesEventLoop: true,
    roots: [
      { directory: plugins, builtIn: true },
      { directory: join(settings.directory, 'plugins'), builtIn: false },
      ...settings.pluginFolders.map(directory => ({ directory, builtIn: false }))
    ]
  })
  uncaughtErrors.reportTo(kernel)
  endOnSignals(kernel)
  const { address, port, family } = kernel.address
  const host = family === 'IPv6' ? `[${address}]` : address
  kernel.log.info(
    `Busbar ${release} serves http://${host}:${port} after ${Math.round(performance.now() - startedAt)} ms, and says at /api/docs what it can; data in ${settings.directory}`
  )
  await announceChecks(kernel)
}

const longestSaid = 4_096

/** Says plainly what is reachable: without a container engine everything but deploying works. */
async function announceChecks({ registry, log }: Kernel): Promise<void> {
  for (const { key, value } of registry.contributions(healthChecks).entries()) {
    await value.check().then(
      result => {
        log.info(`${key}: ${cutText(String(result), longestSaid)}`)
      },
      (error: unknown) => {
        log.warn(`${key}: ${cutText(faultOf(error).message, longestSaid)}`)
      }
    )
  }
}

function endOnSignals(kernel: Kernel): void {
  let endingSince: number | undefined
  const end = (signal: NodeJS.Signals): void => {
    // Ctrl-C under npm arrives twice at once: from the terminal and from npm. A person's second one comes later.
    if (endingSince !== undefined && performance.now() - endingSince < repeatMs) return
    if (endingSince !== undefined) process.exit(1)
    endingSince = performance.now()
    kernel.log.info(`${signal}: stopping; a second one ends at once`)
    kernel.close().then(
      () => {
        process.exit(0)
      },
      (error: unknown) => {
        kernel.log.error({ err: error }, 'the platform did not stop cleanly')
        process.exit(1)
      }
    )
  }
  process.on('SIGTERM', end)
  process.on('SIGINT', end)
}

main().catch((error: unknown) => {
  const known = error instanceof SettingError || error instanceof HalfRestoredError
  process.stderr.write(
    `Busbar cannot start: ${known || !(error instanceof Error) ? String((error as Error).message) : (error.stack ?? error.message)}\n`
  )
  process.exit(1)
})
