import { allow, type ChannelDeclarer } from 'busbar/sdk'
import type { Platform } from './platform.js'

export function channels(channel: ChannelDeclarer<Platform>): void {
  channel({
    name: 'platform',
    summary: '`updating` is true when a self-update starts, false when it fails before touching the host',
    events: ['update'],
    access: allow.token('read', { project: 'none' })
  })
}
