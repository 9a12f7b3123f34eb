import { randomUUID } from 'node:crypto'
import { applicationTeardown } from 'busbar/api/applications'
import { containerRuntime } from 'busbar/api/containers'
import { rolloutHooks } from 'busbar/api/deployments'
import { type Contributor, kernel, type StartContext } from 'busbar/sdk'
import { Leftovers } from './leftovers.js'
import { SessionEnds } from './session-ends.js'
import { SessionService } from './session-service.js'
import { SessionStore } from './session-store.js'
import type { Settings } from './settings.js'

export const needs = {
  db: kernel.database,
  bus: kernel.bus,
  clock: kernel.clock,
  audit: kernel.audit,
  runtime: containerRuntime
}

/** The running plugin. */
export interface Terminal {
  readonly sessions: SessionService
  readonly leftovers: Leftovers
}

export function startTerminal({
  use,
  config,
  log,
  signal,
  onStop
}: StartContext<typeof needs, Settings>): Terminal {
  const store = new SessionStore(use.db)
  const ends = new SessionEnds({ ...use, store })
  const sessions = new SessionService({
    ...use,
    store,
    ends,
    log,
    signal,
    settings: config,
    processId: randomUUID()
  })
  onStop(sessions.start())
  return { sessions, leftovers: new Leftovers({ ...use, store, ends, log }) }
}

export function terminalContributions(contribute: Contributor, { sessions }: Terminal): void {
  contribute(applicationTeardown, 'terminal', {
    teardown: async applicationId => {
      await sessions.endOf({ applicationId, reason: 'application-deleted' })
    }
  })
  contribute(rolloutHooks, 'terminal', {
    at: async (boundary, { applicationId, containerId }) => {
      if (boundary === 'after record' && containerId !== undefined)
        await sessions.endOf({ applicationId, reason: 'container-replaced', exceptContainerId: containerId })
    }
  })
}
