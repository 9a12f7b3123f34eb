/** How little may come: as for clones by git, where they are `http.lowSpeedTime` and `http.lowSpeedLimit`. */
export interface PaceLimits {
  readonly seconds: number
  readonly bytesPerSecond: number
}
