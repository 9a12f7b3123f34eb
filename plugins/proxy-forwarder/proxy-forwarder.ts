import { proxyDrivers } from 'busbar/api/domains'
import type { Contributor, Health, StartContext } from 'busbar/sdk'
import { ForwarderDriver } from './forwarder-driver.js'
import type { Settings } from './settings.js'

export const needs = {}

/** The running plugin. */
interface ProxyForwarder {
  readonly driver: ForwarderDriver
}

export function startProxyForwarder({
  config,
  onStop
}: StartContext<typeof needs, Settings>): ProxyForwarder {
  const driver = new ForwarderDriver(config)
  onStop(async () => await driver.stop())
  return { driver }
}

export function forwarderContributions(contribute: Contributor, { driver }: ProxyForwarder): void {
  contribute(proxyDrivers, 'forwarder', driver)
}

export function forwarderHealth({ driver }: ProxyForwarder): Health {
  const fault = driver.fault()
  return fault === null ? { status: 'ok' } : { status: 'degraded', reason: fault }
}
