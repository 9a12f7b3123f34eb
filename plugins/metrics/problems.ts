import { problemTable } from 'busbar/sdk'

export const problems = problemTable({
  badRange: [
    400,
    'E_METRICS_RANGE',
    'range must be one of {ranges}',
    { field: 'range', remedy: 'for any other time, give from and to' }
  ],
  badTime: [400, 'E_METRICS_TIME', '{field} must be an RFC 3339 time, such as 2026-01-31T12:00:00Z'],
  reversed: [400, 'E_METRICS_TIME', 'from must not be after to', { field: 'from' }],
  containersOff: [503, 'E_PLUGIN_OFF', '"containers" is off', 'turn on a plugin that implements it']
})
