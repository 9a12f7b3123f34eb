import { settingsFrom } from '../../../sdk/testing/settings-from.js'
import { type HostPolicy, usualHostPolicy } from '../network/host-policy.js'
import { settings } from '../settings.js'

/** What the plugin makes of this GIT_PRIVATE_HOSTS. */
export const policyOf = (text: string | undefined, isLoopbackOnly = false): HostPolicy =>
  settingsFrom(settings, { GIT_PRIVATE_HOSTS: text }).git_private_hosts ?? usualHostPolicy(isLoopbackOnly)
