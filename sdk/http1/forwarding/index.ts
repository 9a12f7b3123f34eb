/** A forwarder of HTTP/1.1: from a port, by routes of its user's, to containers that can be exchanged between two requests. */

export { type ForwardingServer, openForwardingServer } from './forwarding-server.js'
export { type Head, hostnameOf } from './head.js'
export type { HeaderBag } from './header-rules.js'
export type { Refusal } from './refusal.js'
export {
  type Decision,
  defaultLimits,
  type ForwardedOrigin,
  type Forwarding,
  type ForwardingLimits,
  type ObservedRequest,
  type OwnAnswer,
  type RequestOutcome,
  type Rewrite,
  type Route
} from './route.js'
export {
  createSwitchable,
  type ForwardSwitch,
  type ForwardSwitchProof,
  isSameTarget,
  type Switchable
} from './switchable.js'
export type { ForwardTarget } from './upstream.js'
