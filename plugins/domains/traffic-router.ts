import type { TrafficRouter } from 'busbar/api/deployments'
import type { OwnHosts } from './own-hosts.js'
import type { Routing } from './routing.js'

/** Hostnames as deploys see them. */
export const createTrafficRouter = (routing: Routing, ownHosts: OwnHosts): TrafficRouter => ({
  async prepare(applicationId) {
    await ownHosts.give(applicationId)
    if (routing.driver() === undefined) return 'No hostname leads to it: no proxy driver is on'
    const fault = routing.fault()
    return fault === null ? null : `Its hostnames may not be served: ${fault}`
  },
  switchTo: async (applicationId, target) => await routing.switchTo(applicationId, target),
  revert: async (applicationId, target) => await routing.revert(applicationId, target)
})
