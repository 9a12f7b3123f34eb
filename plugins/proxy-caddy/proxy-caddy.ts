import { containerRuntime } from 'busbar/api/containers'
import { proxyDrivers } from 'busbar/api/domains'
import { imageService } from 'busbar/api/images'
import { accessLogFiles } from 'busbar/api/requests'
import { type Contributor, type Health, kernel, optional, type StartContext } from 'busbar/sdk'
import { type AddressTest, addressesIn } from 'busbar/sdk/http1'
import { readAccessLine } from './log/access-line.js'
import { openCaddy, type RunningCaddy } from './open-caddy.js'
import type { Settings } from './settings.js'

export const needs = {
  exec: kernel.exec,
  clock: kernel.clock,
  instance: kernel.instance,
  runtime: optional(containerRuntime),
  images: optional(imageService)
}

/** The running plugin. */
interface ProxyCaddy {
  /** Undefined where no Caddy is there, and none is asked for. */
  readonly caddy: RunningCaddy | undefined
  /** Proxies in front that are believed. */
  readonly isTrusted: AddressTest | undefined
}

export async function startProxyCaddy({
  use,
  config,
  log,
  onStop
}: StartContext<typeof needs, Settings>): Promise<ProxyCaddy> {
  const { runtime, images } = use
  const caddy = await openCaddy({ ...use, settings: config, log, containers: { runtime, images } })
  onStop(async () => await caddy?.close())
  return { caddy, isTrusted: addressesIn(use.instance.trustedProxies) }
}

export function caddyContributions(contribute: Contributor, { caddy, isTrusted }: ProxyCaddy): void {
  if (caddy === undefined) return
  // Behind the key of the built-in one, which serves while Caddy cannot.
  contribute(proxyDrivers, 'proxy-caddy', caddy.driver)
  if (caddy.accessLog !== null)
    contribute(accessLogFiles, 'proxy-caddy', {
      path: caddy.accessLog,
      parse: line => readAccessLine(line, isTrusted)
    })
}

export function caddyHealth({ caddy }: ProxyCaddy): Health {
  const fault = caddy?.driver.fault() ?? null
  return fault === null ? { status: 'ok' } : { status: 'degraded', reason: fault }
}
