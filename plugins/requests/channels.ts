import { allow, type ChannelDeclarer } from 'busbar/sdk'
import type { Requests } from './requests.js'
import { requestLog } from './schemas.js'

const told =
  'A request is in the history before it is told, with the same `id`. Of more than 200 in a second the others are in the history alone.'

export function channels(channel: ChannelDeclarer<Requests>): void {
  channel({
    name: 'requests:{applicationId}',
    access: allow.token('read', { project: { of: 'application', param: 'applicationId' } }),
    events: { request: requestLog },
    summary: 'The requests that proxies answer for one application, as they come',
    description: told
  })
  channel({
    name: 'requests:all',
    access: allow.token('read', { role: 'admin', project: 'never-pinned' }),
    events: { request: requestLog },
    summary: 'The requests that proxies answer, of all applications and of none, as they come',
    description: told
  })
}
