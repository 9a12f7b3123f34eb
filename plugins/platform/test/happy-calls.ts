import type { HappyCalls } from 'busbar/sdk/testing'

/** Nothing of an installation without another proxy can be restarted here, or has a log. */
export const happyCalls: HappyCalls = {
  'POST /api/maintenance/restart': () => ({ query: '?service=caddy', expect: 400 }),
  'GET /api/maintenance/logs': () => ({ query: '?service=caddy', expect: 400 })
}
