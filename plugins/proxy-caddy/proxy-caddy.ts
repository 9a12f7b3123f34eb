import { proxyDrivers } from 'busbar/api/domains'
import { accessLogFiles } from 'busbar/api/requests'
import { type Contributor, type Health, kernel, type StartContext } from 'busbar/sdk'
import { readAccessLine } from './log/access-line.js'
import { openCaddy, type RunningCaddy } from './open-caddy.js'
import type { Settings } from './settings.js'

export const needs = { exec: kernel.exec, clock: kernel.clock, instance: kernel.instance }

/** The running plugin. */
interface ProxyCaddy {
  /** Undefined where no Caddy is there, and none is asked for. */
  readonly caddy: RunningCaddy | undefined
}

export async function startProxyCaddy({
  use,
  config,
  log,
  onStop
}: StartContext<typeof needs, Settings>): Promise<ProxyCaddy> {
  const caddy = await openCaddy({ ...use, settings: config, log })
  onStop(async () => await caddy?.close())
  return { caddy }
}

export function caddyContributions(contribute: Contributor, { caddy }: ProxyCaddy): void {
  if (caddy === undefined) return
  // Behind the key of the built-in one, which serves while Caddy cannot.
  contribute(proxyDrivers, 'proxy-caddy', caddy.driver)
  if (caddy.accessLog !== null)
    contribute(accessLogFiles, 'proxy-caddy', { path: caddy.accessLog, parse: readAccessLine })
}

export function caddyHealth({ caddy }: ProxyCaddy): Health {
  const fault = caddy?.driver.fault() ?? null
  return fault === null ? { status: 'ok' } : { status: 'degraded', reason: fault }
}
