import { allow, type ChannelDeclarer } from 'busbar/sdk'
import type { GreetingService } from './greeting-service.js'
import { greeting } from './schemas.js'

/** The one name that the declaration and the publisher share. */
export const greetingsChannel = 'x:hello:greetings'

export function channels(channel: ChannelDeclarer<GreetingService>) {
  channel({
    name: greetingsChannel,
    summary: 'Every greeting, when it is made',
    access: allow.token('read', { project: 'none' }),
    events: { greeted: greeting }
  })
}
