import type { TrafficSwitch, TrafficTarget } from 'busbar/api/deployments'
import { service } from 'busbar/sdk'

/**
 * The direct address of an application: one port of BUSBAR_DIRECT_HOST, the same for its life, forwarded by the
 * platform to the current container. The target is kept in the database, so it survives a crash.
 */
export interface DirectAddresses {
  /** Gives the application its port if it has none, and starts to listen. */
  open(applicationId: string): Promise<{ readonly url: string }>
  /** New requests go to `target` from the moment this resolves; those under way finish where they are. */
  switchTo(applicationId: string, target: TrafficTarget): Promise<TrafficSwitch>
  /** The application is stopped or its container moved: requests get 503, or go to the new address. */
  retarget(applicationId: string, target: TrafficTarget | null): Promise<void>
  /** Gives the port back. */
  close(applicationId: string): Promise<void>
}
export const directAddresses = service<DirectAddresses>('direct.addresses')
