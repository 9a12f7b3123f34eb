import { allow, type ChannelDeclarer, described, named, object, Type } from 'busbar/sdk'
import type { Platform } from './platform.js'

const platformUpdate = named(
  'PlatformUpdate',
  object({
    updating: described(
      Type.Boolean(),
      'True when an update of the platform itself begins, false when it fails before anything has changed.'
    )
  }),
  { description: 'An update of the platform begins, or does not.' }
)

export function channels(channel: ChannelDeclarer<Platform>): void {
  channel({
    name: 'platform',
    summary: 'Whether the platform is being updated',
    events: { update: platformUpdate },
    access: allow.token('read', { project: 'none' })
  })
}
