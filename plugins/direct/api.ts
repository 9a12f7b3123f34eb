import { service } from 'busbar/sdk'

/** Where an application's requests go: one container of one deployment. */
export interface Target {
  readonly deploymentId: string
  readonly containerId: string
  readonly host: string
  readonly port: number
}

/** What a switch did to the traffic. */
export interface SwitchProof {
  /** Requests answered between the switch and the end of the drain, by either version. */
  readonly served: number
  /** Requests that got no answer from a container (502 or a cut connection). */
  readonly failed: number
  /** The longest time between two answers while requests were waiting; ms. */
  readonly longestGapMs: number
  /** How long the old version's last requests took to finish; ms. */
  readonly drainMs: number
  /** Requests and sockets still open on the old version when the time was up. */
  readonly cut: number
}

/**
 * The direct address of an application: one port of BUSBAR_DIRECT_HOST, the same for its life, forwarded by the
 * platform to the current container. The target is kept in the database, so it survives a crash.
 */
export interface DirectAddresses {
  /** Gives the application its port if it has none, and starts to listen. */
  open(applicationId: string): Promise<{ readonly url: string }>
  /** New requests go to `target` from the moment this resolves; those under way finish where they are. */
  switchTo(applicationId: string, target: Target): Promise<{ drain(timeoutMs: number): Promise<SwitchProof> }>
  /** The application is stopped or its container moved: requests get 503, or go to the new address. */
  retarget(applicationId: string, target: Target | null): Promise<void>
  /** Gives the port back. */
  close(applicationId: string): Promise<void>
}
export const directAddresses = service<DirectAddresses>('direct.addresses')
