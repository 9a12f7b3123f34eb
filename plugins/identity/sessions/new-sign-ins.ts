import { type Events, networkOf, plainAddress, type Tx } from 'busbar/sdk'
import { type Client, newSignIn, type UserRow } from '../api.js'
import type { KnownDevices } from './known-devices.js'
import type { SessionStore } from './session-store.js'

interface NewSignInsParts {
  readonly events: Events
  readonly devices: Pick<KnownDevices, 'isKnown'>
  readonly sessions: Pick<SessionStore, 'addresses'>
}

const placeOf = (address: string): string => networkOf(plainAddress(address))

/** Tells of sign-ins from a device and an address at which the user has not signed in before. */
export class NewSignIns {
  constructor(private readonly parts: NewSignInsParts) {}

  /** Before the session is made, in its transaction. */
  async note(
    { id: userId, email, created_at: createdAt, last_active_at: activeAt }: UserRow,
    client: Client,
    tx: Tx
  ): Promise<void> {
    const { events, devices, sessions } = this.parts
    if (devices.isKnown(email, client)) return
    const addresses = await sessions.addresses(userId, tx)
    const isFirst = addresses.length === 0 && activeAt <= createdAt
    const place = placeOf(client.ip)
    if (isFirst || addresses.some(address => placeOf(address) === place)) return
    const program = client.userAgent ?? ''
    await events.emit(
      newSignIn,
      {
        userId,
        address: plainAddress(client.ip),
        client: program === '' ? 'a program without a name' : program.slice(0, 512)
      },
      tx
    )
  }
}
