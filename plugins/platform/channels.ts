import { allow, type ChannelDeclarer } from 'busbar/sdk'

export function channels (channel: ChannelDeclarer<object>): void {
  channel({
    name: 'platform',
    summary: '`updating` is true when a self-update starts, false when it fails before touching the host',
    events: ['update'],
    access: allow.token('read', { project: 'none' })
  })
}
