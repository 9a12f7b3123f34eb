import type { Socket } from 'node:net'
import { networkOf, plainAddress } from '../address.js'

const keyOf = Symbol('whose budget')

type WithKey = Socket & { [keyOf]?: string | undefined }

/** Whose budget a connection uses: that of its client's network. Undefined for one that stands for many clients. */
export function setClientKey(socket: WithKey, isExempt: boolean): string | undefined {
  const key = isExempt ? undefined : networkOf(plainAddress(socket.remoteAddress ?? ''))
  socket[keyOf] = key
  return key
}

export const clientKey = (socket: WithKey): string | undefined =>
  keyOf in socket ? socket[keyOf] : setClientKey(socket, false)
