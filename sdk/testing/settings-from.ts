import type { Static, TSchema } from 'busbar/sdk'
import { pluginConfig } from '../../core/config/plugin-config.js'

/**
 * The settings that a plugin with this `config` is started with where these are the variables and the operator has
 * stored nothing. Throws what the plugin would be `misconfigured` with.
 *
 *     settingsFrom(settings, { SHOP_PORT: '7000' })
 */
export const settingsFrom = <T extends TSchema>(
  config: T,
  variables: Readonly<Record<string, string | undefined>> = {}
): Static<T> => pluginConfig({ config }, {}, name => variables[name]) as Static<T>
