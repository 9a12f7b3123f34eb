import type { EventDeclarer } from 'busbar/sdk'
import type { Notifications } from './notifications.js'

export function events(on: EventDeclarer<Notifications>): void {
  on.notification(async (raised, { delivery }) => {
    await delivery.deliver(raised)
  })
}
