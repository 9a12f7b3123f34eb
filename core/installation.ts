import type { Installation } from 'busbar/sdk'
import type { Settings } from './config/environment.js'
import { openBulkConnection } from './database/bulk-connection.js'
import { platformSchemas } from './database/platform-schemas.js'
import type { Keyring } from './secrets/keyring.js'

interface InstallationParts {
  readonly settings: Settings
  /** Of the server that is in use, the embedded one too. */
  readonly url: string
  readonly keyring: Keyring
  readonly environment: Readonly<Record<string, string | undefined>>
}

/** Read where keys come from, and not as settings. */
const keyVariables = ['ENCRYPTION_KEY', 'ENCRYPTION_KEYS', 'ENCRYPTION_KEY_CURRENT']

/** What a backup of the platform is made of. */
export function installationOf({ settings, url, keyring, environment }: InstallationParts): Installation {
  return Object.freeze<Installation>({
    directory: settings.directory,
    pluginFolders: settings.pluginFolders,
    variables: () =>
      [
        ...settings.usedVariables(),
        ...keyVariables.filter(name => (environment[name]?.trim() ?? '') !== '')
      ].sort(),
    keys: () => keyring.exported(),
    connect: async () => await openBulkConnection(url),
    schemas: platformSchemas
  })
}
