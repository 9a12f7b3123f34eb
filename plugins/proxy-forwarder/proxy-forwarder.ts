import { proxyDrivers } from 'busbar/api/domains'
import { requestRecorder } from 'busbar/api/requests'
import { type Contributor, type Health, kernel, optional, type StartContext } from 'busbar/sdk'
import { ForwarderDriver } from './forwarder-driver.js'
import { RequestNotes } from './request-notes.js'
import type { Settings } from './settings.js'

export const needs = {
  clock: kernel.clock,
  instance: kernel.instance,
  recorder: optional(requestRecorder)
}

/** The running plugin. */
interface ProxyForwarder {
  readonly driver: ForwarderDriver
}

export function startProxyForwarder({
  use,
  config,
  onStop
}: StartContext<typeof needs, Settings>): ProxyForwarder {
  const notes = new RequestNotes(use.recorder)
  const driver = new ForwarderDriver({ ...use, notes, settings: config })
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
