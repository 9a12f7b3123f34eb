import { createRequire } from 'node:module'

const { version } = createRequire(import.meta.url)('busbar/package.json') as { version: string }

/** The release of the platform. */
export const release = version

/** The version of the SDK that plugins name in their `plugin.json`. */
export const sdkVersion = '0.1.0'
