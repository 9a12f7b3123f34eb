import type { DatabaseEngine } from '../api.js'

/** A server of any kind, as an image with variables: what it keeps are files. */
export const engine: DatabaseEngine = {
  newCredentials: () => ({}),
  dataPath: ({ dataDir }) => dataDir ?? '/data',
  container: ({ credentials }) => ({ env: credentials }),
  ready: () => null,
  connectionString: () => null,
  connectionParts: () => ({}),
  dump: null
}
