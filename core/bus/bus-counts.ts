/** What has become of live messages since the process began. */
export interface BusCounts {
  /** Messages for subscribers of this process, each once, however many they were for. */
  published: number
  /** Messages that no subscriber of this process got, or none of another one: more were published than could be written, or the database was away. */
  dropped: number
  /** Copies that one client did not get, as it did not read. */
  missed: number
  /** Clients that were disconnected for not reading. */
  disconnected: number
}

export const noBusCounts = (): BusCounts => ({ published: 0, dropped: 0, missed: 0, disconnected: 0 })
