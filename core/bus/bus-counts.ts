/** What has become of live messages since the process began. */
export interface BusCounts {
  /** Messages for subscribers of this process, each once, however many they were for. */
  published: number
  /** Messages that none of their subscribers got, as more were published than could be written. */
  dropped: number
  /** Copies that one client did not get, as it did not read. */
  missed: number
  /** Clients that were disconnected for not reading. */
  disconnected: number
}

export const noBusCounts = (): BusCounts => ({ published: 0, dropped: 0, missed: 0, disconnected: 0 })
