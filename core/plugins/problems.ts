import { Problem, type ProblemKind, problemTable } from 'busbar/sdk'

/** The answers of `/api/plugins` that are not a plugin. */
export const pluginProblems = problemTable({
  unknown: [404, 'E_PLUGIN_UNKNOWN', 'there is no plugin "{id}"'],
  essential: [
    409,
    'E_PLUGIN_ESSENTIAL',
    'the plugin "{id}" is essential: the platform does not run without it'
  ],
  needed: [
    409,
    'E_PLUGIN_NEEDED',
    'the plugin "{id}" is needed by {dependents}',
    'send "cascade": true to turn those off too, or "force": true to let them wait for it'
  ],
  dependencies: [409, 'E_PLUGIN_BLOCKED', 'the plugin "{id}" cannot run: {reason}'],
  rival: [
    409,
    'E_PLUGIN_RIVAL',
    '"{id}" and "{provider}" both implement "{contract}", and one plugin may at a time',
    'turn "{provider}" off first, with "force": true where others need it; they come back with "{id}"'
  ],
  unfit: [
    409,
    'E_PLUGIN_UNFIT',
    'turning on "{id}" would stop {users}',
    'install a version that fits, or turn those off first'
  ],
  failed: [409, 'E_PLUGIN_FAILED', 'the plugin "{id}" did not start: {reason}'],
  notRunning: [409, 'E_PLUGIN_OFF', 'the plugin "{id}" is off', 'enable it instead'],
  reloadFailed: [
    409,
    'E_PLUGIN_RELOAD',
    'the new version of "{id}" did not start, the old one keeps running: {reason}'
  ],
  isOn: [409, 'E_PLUGIN_ON', 'the plugin "{id}" is on, and uses what would be removed', 'turn it off first'],
  purgeBlocked: [
    409,
    'E_PLUGIN_PURGE',
    'what "{id}" has stored cannot be removed, because others depend on it: {detail}',
    'purge the plugins that own those first'
  ],
  config: [400, 'E_PLUGIN_CONFIG', 'the settings of "{id}" are not valid: {reason}']
})

/** When the turn of a change does not come. */
export const changesBusy: ProblemKind = Object.freeze({
  status: 503,
  code: 'E_PLUGINS_BUSY',
  message: 'plugins are changed one at a time, and another change is not over; nothing has been changed'
})

/** `present`: the change that has its turn, as `the start of "shop"`. */
export const changesAreBusy = (present: string): Problem =>
  new Problem(
    changesBusy.status,
    changesBusy.code,
    `plugins are changed one at a time, and ${present} is not over; nothing has been changed: try again`,
    {},
    { 'retry-after': '5' }
  )
