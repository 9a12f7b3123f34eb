import type { EndReason } from './end-reason.js'

/** Bytes in one frame, before they are base64. */
export const mostOutputBytes = 4096

export const outputFrame = (bytes: Buffer): string => `{"type":"output","data":"${bytes.toString('base64')}"}`

export const closedFrame = (reason: EndReason): string =>
  JSON.stringify({ type: 'closed', message: 'session ended', reason })
